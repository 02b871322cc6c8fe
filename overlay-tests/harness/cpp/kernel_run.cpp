// Kernels by host name, and a grid of simdgroups for each dispatch.

#include "kernel_run.h"

#include <string>
#include <unordered_map>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "registry.h"
#include "simdgroup.h"

namespace overlay {
namespace {

constexpr uint32_t kBuffers = 31; // Metal's limit for a kernel

std::unordered_map<std::string, Call>& kernels() {
  static std::unordered_map<std::string, Call> map;
  return map;
}

// Apple's compiler flushes denormal floats in these kernels; so does this,
// unless it is compiled for the mode that keeps them. Halves keep theirs: no
// processor here flushes them in its conversions.
class FlushDenormals {
 public:
#if defined(OVERLAY_KEEP_DENORMALS)
  FlushDenormals() {}
  ~FlushDenormals() {}
#elif defined(__SSE__)
  FlushDenormals() : before_(_mm_getcsr()) {
    _mm_setcsr(before_ | 0x8040); // flush to zero, denormals are zero
  }
  ~FlushDenormals() {
    _mm_setcsr(before_);
  }

 private:
  unsigned before_;
#elif defined(__aarch64__)
  FlushDenormals() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(before_ | (uint64_t(1) << 24)));
  }
  ~FlushDenormals() {
    asm volatile("msr fpcr, %0" ::"r"(before_));
  }

 private:
  uint64_t before_;
#else
#error "say here how this processor flushes denormals"
#endif
};

struct Dispatch {
  Call call;
  void* const* buffers;
  Position at;
};

void lane_of(void* context, int lane) {
  auto dispatch = static_cast<const Dispatch*>(context);
  Position at = dispatch->at;
  at.lane = uint32_t(lane);
  dispatch->call(dispatch->buffers, at);
}

} // namespace

void add_kernel(const char* host_name, Call call) {
  kernels()[host_name] = call;
}

Call find_kernel(const char* host_name) {
  auto found = kernels().find(host_name);
  return found == kernels().end() ? nullptr : found->second;
}

// The i-th of a sweep over so many.
uint32_t turn(Sweep sweep, uint32_t i, uint32_t of) {
  return sweep == Sweep::ascending ? i : of - 1 - i;
}

const char* run_kernel(
    const char* host_name,
    const uint32_t grid[3],
    const uint32_t group[3],
    void* const* buffers,
    uint32_t count,
    Sweep sweep) {
  const Call call = find_kernel(host_name);
  if (!call) {
    return "no kernel of this host name in the library";
  }
  const uint64_t threads = uint64_t(group[0]) * group[1] * group[2];
  if (threads == 0 || threads % kLanes != 0) {
    return "the threadgroup is not a whole number of simdgroups";
  }
  if (count > kBuffers) {
    return "a kernel has at most 31 buffers";
  }
  void* all[kBuffers] = {};
  for (uint32_t i = 0; i < count; i++) {
    all[i] = buffers[i];
  }

  FlushDenormals flush;
  Dispatch dispatch{call, all, {}};
  Position& at = dispatch.at;
  const uint32_t simdgroups = uint32_t(threads / kLanes);
  for (uint32_t z = 0; z < grid[2]; z++) {
    at.group[2] = turn(sweep, z, grid[2]);
    for (uint32_t y = 0; y < grid[1]; y++) {
      at.group[1] = turn(sweep, y, grid[1]);
      for (uint32_t x = 0; x < grid[0]; x++) {
        at.group[0] = turn(sweep, x, grid[0]);
        for (uint32_t i = 0; i < simdgroups; i++) {
          at.simdgroup = turn(sweep, i, simdgroups);
          if (const char* why = run_simdgroup(lane_of, &dispatch, sweep)) {
            return why;
          }
        }
      }
    }
  }
  return nullptr;
}

} // namespace overlay

int overlay_kernel_exists(const char* host_name) {
  return overlay::find_kernel(host_name) != nullptr;
}

const char* overlay_kernel_run(
    const char* host_name,
    const uint32_t grid[3],
    const uint32_t group[3],
    void* const* buffers,
    uint32_t count) {
  using namespace overlay;
  return run_kernel(
      host_name, grid, group, buffers, count, Sweep::ascending);
}
