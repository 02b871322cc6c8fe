// Apple's intrinsics, and the one helper of a compiler runtime that lowering
// bfloat needs.

#include "oracle.h"

extern "C" {

float air_simd_sum(float value) asm("air.simd_sum.f32");
float air_simd_sum(float value) {
  return metal::simd_sum(value);
}

float air_quad_sum(float value) asm("air.quad_sum.f32");
float air_quad_sum(float value) {
  return metal::quad_sum(value);
}

float air_shuffle_down(float value, uint16_t delta) asm(
    "air.simd_shuffle_down.f32");
float air_shuffle_down(float value, uint16_t delta) {
  return metal::simd_shuffle_down(value, delta);
}

float air_float_of_int(int32_t value) asm("air.convert.f.f32.s.i32");
float air_float_of_int(int32_t value) {
  return float(value);
}

int32_t air_min(int32_t a, int32_t b) asm("air.min.s.i32");
int32_t air_min(int32_t a, int32_t b) {
  return std::min(a, b);
}

int32_t air_clamp(int32_t x, int32_t low, int32_t high) asm(
    "air.clamp.s.i32");
int32_t air_clamp(int32_t x, int32_t low, int32_t high) {
  return std::min(std::max(x, low), high);
}

// The fp modes' kernels. In what order a GPU sums a dot product Apple does not
// say; here it is front to back, with fused steps.
typedef float float4 __attribute__((ext_vector_type(4)));
typedef _Float16 half4 __attribute__((ext_vector_type(4)));

float air_dot(float4 a, float4 b) asm("air.dot.v4f32");
float air_dot(float4 a, float4 b) {
  float sum = a.x * b.x;
  for (int i = 1; i < 4; i++) {
    sum = __builtin_fmaf(a[i], b[i], sum);
  }
  return sum;
}

float4 air_floats_of_halves(half4 values) asm("air.convert.f.v4f32.f.v4f16");
float4 air_floats_of_halves(half4 values) {
  return __builtin_convertvector(values, float4);
}

__bf16 __truncsfbf2(float value) {
  const bfloat rounded(value);
  __bf16 result;
  std::memcpy(&result, &rounded.bits, sizeof(result));
  return result;
}

} // extern "C"
