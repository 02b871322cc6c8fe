// Kernels by host name.
#pragma once

#include <cstddef>
#include <cstdint>

namespace overlay {

// Where one lane of a dispatch stands.
struct Position {
  uint32_t group[3]; // threadgroup_position_in_grid
  uint32_t simdgroup; // simdgroup_index_in_threadgroup
  uint32_t lane; // thread_index_in_simdgroup
};

using Call = void (*)(void* const* buffers, const Position& at);

void add_kernel(const char* host_name, Call call);
Call find_kernel(const char* host_name);

} // namespace overlay
