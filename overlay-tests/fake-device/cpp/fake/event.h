// Shared events: how command buffers, and CPU streams, wait for each other.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

#include "fake/objc.h"

namespace fake {

class SharedEvent : public Object {
 public:
  SharedEvent() : Object("MTLSharedEvent") {}

  uint64_t value() const;
  void signal(uint64_t value);
  void wait(uint64_t value);
  bool wait_for(uint64_t value, uint64_t milliseconds);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t value_{0};
};

// Encoders of one queue run in order here: a fence has nothing to do.
class Fence : public Object {
 public:
  Fence() : Object("MTLFence") {}
};

} // namespace fake
