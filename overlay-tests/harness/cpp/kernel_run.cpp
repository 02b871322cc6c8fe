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
  for (at.group[2] = 0; at.group[2] < grid[2]; at.group[2]++) {
    for (at.group[1] = 0; at.group[1] < grid[1]; at.group[1]++) {
      for (at.group[0] = 0; at.group[0] < grid[0]; at.group[0]++) {
        for (at.simdgroup = 0; at.simdgroup < threads / kLanes;
             at.simdgroup++) {
          if (const char* why = run_simdgroup(lane_of, &dispatch)) {
            return why;
          }
        }
      }
    }
  }
  return nullptr;
}
