// What the fake device was asked to run: the record of one dispatch.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fake/library.h"
#include "fake/memory.h"

namespace fake {

using Dims = std::array<unsigned long, 3>;

// A kernel argument: a place in a buffer, or bytes.
struct Argument {
  Buffer* buffer{nullptr};
  size_t offset{0};
  std::vector<uint8_t> bytes;
};

struct Dispatch {
  Kernel kernel;
  Dims grid; // in threadgroups, or in threads
  bool grid_in_threads;
  Dims group;
  std::map<int, Argument> arguments;
  std::map<int, size_t> threadgroup_memory;
  const void* queue; // the command queue, one a stream
};

// Every dispatch since the last call, in the order MLX encoded them.
std::vector<Dispatch> take_dispatches();

// Called on the encoding thread as a dispatch is recorded; none by default.
void on_dispatch(std::function<void(const Dispatch&)> hook);

// Runs dispatches when their command buffer is reached; throws what the
// command buffer then fails with. Without a runner nothing is computed.
void set_runner(std::function<void(const Dispatch&)> runner);

} // namespace fake
