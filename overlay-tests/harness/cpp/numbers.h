// The numbers kernels compute with: half, bfloat, and a probe type.
#pragma once

#include <cstdint>
#include <cstring>

#ifdef OVERLAY_SYMBOLIC
#include "symbolic.h"
#else

typedef _Float16 half;

// bfloat as Metal has it: sums and products of two round to bfloat, anything
// mixed with float is float.
struct bfloat {
  uint16_t bits;

  bfloat() = default;
  explicit bfloat(float value) {
    uint32_t word;
    std::memcpy(&word, &value, 4);
    if ((word & 0x7fffffff) > 0x7f800000) {
      bits = uint16_t((word >> 16) | 0x40); // quiet
    } else {
      bits = uint16_t((word + 0x7fff + ((word >> 16) & 1)) >> 16);
    }
  }
  operator float() const {
    uint32_t word = uint32_t(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
};

inline bfloat operator+(bfloat a, bfloat b) {
  return bfloat(float(a) + float(b));
}

inline bfloat operator*(bfloat a, bfloat b) {
  return bfloat(float(a) * float(b));
}

// Adds as half does and stores fp32: what a narrow store would hide shows.
struct probe {
  float value;

  probe() = default;
  explicit probe(float value) : value(value) {}
  operator float() const {
    return value;
  }
};

inline probe operator+(probe a, probe b) {
  return probe(float(half(a.value) + half(b.value)));
}

inline probe operator*(probe a, probe b) {
  return probe(float(half(a.value) * half(b.value)));
}

namespace overlay {

template <typename T>
inline void sum_lanes(T* lanes, int count) {
  for (int step = 1; step < count; step *= 2) {
    for (int i = 0; i < count; i += 2 * step) {
      const T sum = lanes[i] + lanes[i + step];
      lanes[i] = sum;
    }
  }
  for (int i = 1; i < count; i++) {
    lanes[i] = lanes[0];
  }
}

} // namespace overlay

#endif

typedef half float16_t;
typedef bfloat bfloat16_t;
