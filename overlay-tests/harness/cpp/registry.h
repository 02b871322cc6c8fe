// Kernels by host name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "simdgroup.h"

namespace overlay {

// Where one lane of a dispatch stands.
struct Position {
  uint32_t group[3]; // threadgroup_position_in_grid
  uint32_t simdgroup; // simdgroup_index_in_threadgroup
  uint32_t lane; // thread_index_in_simdgroup
};

// What a kernel takes after its buffers: where its simdgroup stands in the
// threadgroup and its lane in the simdgroup; of a kernel of quads, the quad.
struct Lane {
  uint32_t group;
  uint32_t member;
};

constexpr bool of_quads(std::string_view host_name) {
  return host_name.find("_qmv_quad_") != host_name.npos;
}

template <bool quads>
constexpr Lane lane_at(const Position& at) {
  if (quads) {
    return {at.simdgroup * 8 + at.lane / 4, at.lane % 4};
  }
  return {at.simdgroup, at.lane};
}

using Call = void (*)(void* const* buffers, const Position& at);

void add_kernel(const char* host_name, Call call);
Call find_kernel(const char* host_name);

// overlay_kernel_run in either sweep.
const char* run_kernel(
    const char* host_name,
    const uint32_t grid[3],
    const uint32_t group[3],
    void* const* buffers,
    uint32_t count,
    Sweep sweep);

} // namespace overlay
