#include "fake/event.h"

#include <chrono>

namespace fake {

namespace {

const Methods event_methods(
    "MTLSharedEvent",
    {{"signaledValue", method<&SharedEvent::value>()},
     {"setSignaledValue:", method<&SharedEvent::signal>()},
     {"waitUntilSignaledValue:timeoutMS:", method<&SharedEvent::wait_for>()}});

} // namespace

uint64_t SharedEvent::value() const {
  std::lock_guard lock(mutex_);
  return value_;
}

void SharedEvent::signal(uint64_t value) {
  {
    std::lock_guard lock(mutex_);
    value_ = value;
  }
  changed_.notify_all();
}

void SharedEvent::wait(uint64_t value) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return value_ >= value; });
}

bool SharedEvent::wait_for(uint64_t value, uint64_t milliseconds) {
  if (milliseconds == UINT64_MAX) { // MLX's "never times out"
    wait(value);
    return true;
  }
  std::unique_lock lock(mutex_);
  return changed_.wait_for(
      lock, std::chrono::milliseconds(milliseconds), [&] {
        return value_ >= value;
      });
}

} // namespace fake
