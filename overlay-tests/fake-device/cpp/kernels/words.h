// What the laid tree's quantized kernels want of Metal beside the harness's
// host Metal, so that clang can judge an instantiation. Checked, never run.
#pragma once

#include <bit>
#include <cmath>

#include <metal_simdgroup>
#include <metal_stdlib>

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"

namespace metal {

using std::isfinite;
using std::isnan;
using std::log2;
using std::signbit;

struct float4 : vec<float, 4> {
  using vec::vec;
  float4(float);
  template <typename T>
  explicit float4(vec<T, 4>);
};
float dot(float4, float4);

} // namespace metal

template <typename To, typename From>
To as_type(From from) {
  return std::bit_cast<To>(from);
}
