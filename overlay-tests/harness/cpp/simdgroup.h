// A simdgroup on the host: 32 fibers that meet at its collective functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>

namespace overlay {

constexpr int kLanes = 32;
constexpr size_t kSlotBytes = 16;

// In which order simdgroups and lanes go on that wait for nothing. Hardware
// promises none: a kernel whose result depends on it is wrong.
enum class Sweep { ascending, descending };

// The place of a call in the source.
using Site = std::source_location;

// Runs lane(context, 0..31) as 32 fibers to their end. Returns null, or why
// the simdgroup could not finish (lanes that do not meet, a barrier).
const char* run_simdgroup(
    void (*lane)(void* context, int lane),
    void* context,
    Sweep sweep);

// What follows is called from within a lane.
int current_lane();
uint64_t current_simdgroup(); // of this thread's runs, from 1
void* slots(); // one slot of kSlotBytes a lane
bool arrive(const Site& site); // true for the last lane of the 32
void release(); // by the last lane: lets the others go on
void wait(); // by the others
[[noreturn]] void fail(const char* why);

// Every lane brings a value; the last one to arrive combines the 32 in place.
// They must all come from one call: two that lanes diverge to are two
// collectives, and Metal leaves both undefined.
template <typename T, typename Combine>
T meet(T value, const Combine& combine, const Site& site) {
  static_assert(sizeof(T) <= kSlotBytes);
  T* lanes = static_cast<T*>(slots());
  const int lane = current_lane();
  lanes[lane] = value;
  if (arrive(site)) {
    combine(lanes);
    release();
  } else {
    wait();
  }
  return lanes[lane];
}

} // namespace overlay
