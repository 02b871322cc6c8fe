// What Apple's compiled kernels ask of the outside, on the host. Their bitcode
// is lowered by LLVM (src/air.rs); a generated unit names them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include <metal_simdgroup>

#include "registry.h"

namespace overlay {

typedef int int3 __attribute__((ext_vector_type(3)));

// A kernel as Apple's compiler lowers it: a pointer a buffer, then
// threadgroup_position_in_grid, simdgroup_index_in_threadgroup and
// thread_index_in_simdgroup, or the quad's.
template <bool quads, void (*kernel)(), typename Indices>
struct AirKernel;

template <bool quads, void (*kernel)(), size_t... i>
struct AirKernel<quads, kernel, std::index_sequence<i...>> {
  template <size_t>
  using Pointer = void*;

  static void call(void* const* buffers, const Position& at) {
    auto function = reinterpret_cast<
        void (*)(Pointer<i>..., int3, uint32_t, uint32_t)>(kernel);
    const int3 group = {
        int(at.group[0]), int(at.group[1]), int(at.group[2])};
    const Lane lane = lane_at<quads>(at);
    function(buffers[i]..., group, lane.group, lane.member);
  }
};

} // namespace overlay

#define OVERLAY_AIR_KERNEL(name, buffers)        \
  extern "C" void name();                        \
  static const bool name##_added =               \
      (overlay::add_kernel(                      \
           #name,                                \
           overlay::AirKernel<                   \
               overlay::of_quads(#name),         \
               name,                             \
               std::make_index_sequence<buffers>>::call), \
       true);
