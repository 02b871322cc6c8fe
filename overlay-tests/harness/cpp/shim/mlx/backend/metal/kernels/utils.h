// Stands in for MLX's utils.h, which brings in much that no qmv kernel uses.
#pragma once

#include <metal_simdgroup>
#include <metal_stdlib>

#include <limits>

using namespace metal;

template <typename T>
struct Limits {
  static constexpr T max = std::numeric_limits<T>::infinity();
};

template <bool condition, typename T, typename U>
struct ConditionalType {
  using type = std::conditional_t<condition, T, U>;
};

inline int64_t elem_to_loc(
    uint elem,
    constant const int* shape,
    constant const int64_t* strides,
    int ndim) {
  int64_t loc = 0;
  for (int i = ndim - 1; i >= 0 && elem > 0; --i) {
    loc += int64_t(elem % uint(shape[i])) * strides[i];
    elem /= uint(shape[i]);
  }
  return loc;
}

inline ulong2 elem_to_loc_broadcast(
    uint elem,
    constant const int* shape,
    constant const int64_t* a_strides,
    constant const int64_t* b_strides,
    int ndim) {
  return ulong2(
      ulong(elem_to_loc(elem, shape, a_strides, ndim)),
      ulong(elem_to_loc(elem, shape, b_strides, ndim)));
}

inline ulong3 elem_to_loc_broadcast(
    uint elem,
    constant const int* shape,
    constant const int64_t* a_strides,
    constant const int64_t* b_strides,
    constant const int64_t* c_strides,
    int ndim) {
  return ulong3(
      ulong(elem_to_loc(elem, shape, a_strides, ndim)),
      ulong(elem_to_loc(elem, shape, b_strides, ndim)),
      ulong(elem_to_loc(elem, shape, c_strides, ndim)));
}
