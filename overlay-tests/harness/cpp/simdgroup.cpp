// Fibers with a switch of their own on x86-64 (no system call), ucontext
// elsewhere. AddressSanitizer is told of every switch.

#include "simdgroup.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OVERLAY_ASAN 1
#include <sanitizer/common_interface_defs.h>
#endif
#endif

namespace overlay {
namespace {

constexpr size_t kStackBytes = 512 * 1024;

#if defined(__x86_64__)

struct Context {
  void* stack_pointer = nullptr;
};

// Saves the callee-saved registers on the old stack, takes the new one.
extern "C" void overlay_switch(void** from, void* to);
asm(R"(
.text
.type overlay_switch, @function
overlay_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size overlay_switch, .-overlay_switch
)");

void switch_context(Context& from, Context& to) {
  overlay_switch(&from.stack_pointer, to.stack_pointer);
}

void prepare(Context& context, char* stack, void (*entry)()) {
  // A stack as overlay_switch leaves it: six registers, then the address to
  // return to, with the alignment a call would have given.
  auto top = reinterpret_cast<uintptr_t>(stack + kStackBytes) & ~uintptr_t(15);
  auto words = reinterpret_cast<void**>(top) - 8;
  for (int i = 0; i < 8; i++) {
    words[i] = nullptr;
  }
  words[6] = reinterpret_cast<void*>(entry);
  context.stack_pointer = words;
}

#else

struct Context {
  ucontext_t state;
};

void switch_context(Context& from, Context& to) {
  swapcontext(&from.state, &to.state);
}

void prepare(Context& context, char* stack, void (*entry)()) {
  getcontext(&context.state);
  context.state.uc_stack.ss_sp = stack;
  context.state.uc_stack.ss_size = kStackBytes;
  context.state.uc_link = nullptr;
  makecontext(&context.state, entry, 0);
}

#endif

struct Simdgroup {
  Context scheduler;
  Context lanes[kLanes];
  std::unique_ptr<char[]> stacks{new char[kStackBytes * kLanes]};
  alignas(kSlotBytes) char slots[kSlotBytes * kLanes];
  bool done[kLanes];
  int current;
  int live;
  int arrived;
  Site site; // where they arrived
  unsigned generation;
  uint64_t serial = 0;
  const char* failure;
  void (*lane)(void*, int);
  void* context;
#ifdef OVERLAY_ASAN
  const void* scheduler_stack;
  size_t scheduler_stack_bytes;
#endif
};

Simdgroup& simdgroup() {
  static thread_local Simdgroup group;
  return group;
}

void resume(Simdgroup& group, int lane) {
  group.current = lane;
#ifdef OVERLAY_ASAN
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(
      &fake_stack, group.stacks.get() + lane * kStackBytes, kStackBytes);
#endif
  switch_context(group.scheduler, group.lanes[lane]);
#ifdef OVERLAY_ASAN
  __sanitizer_finish_switch_fiber(fake_stack, nullptr, nullptr);
#endif
}

void leave(Simdgroup& group) {
#ifdef OVERLAY_ASAN
  void* fake_stack = nullptr;
  __sanitizer_start_switch_fiber(
      group.done[group.current] ? nullptr : &fake_stack,
      group.scheduler_stack,
      group.scheduler_stack_bytes);
#endif
  switch_context(group.lanes[group.current], group.scheduler);
#ifdef OVERLAY_ASAN
  __sanitizer_finish_switch_fiber(
      fake_stack, &group.scheduler_stack, &group.scheduler_stack_bytes);
#endif
}

void lane_main() {
  Simdgroup& group = simdgroup();
#ifdef OVERLAY_ASAN
  __sanitizer_finish_switch_fiber(
      nullptr, &group.scheduler_stack, &group.scheduler_stack_bytes);
#endif
  group.lane(group.context, group.current);
  group.done[group.current] = true;
  group.live--;
  leave(group);
  std::abort(); // a finished lane is not resumed
}

} // namespace

const char*
run_simdgroup(void (*lane)(void*, int), void* context, Sweep sweep) {
  Simdgroup& group = simdgroup();
  group.live = kLanes;
  group.arrived = 0;
  group.generation = 0;
  group.serial++;
  group.failure = nullptr;
  group.lane = lane;
  group.context = context;
  for (int i = 0; i < kLanes; i++) {
    group.done[i] = false;
    prepare(group.lanes[i], group.stacks.get() + i * kStackBytes, lane_main);
  }
  while (group.live > 0) {
    for (int turn = 0; turn < kLanes; turn++) {
      const int i = sweep == Sweep::ascending ? turn : kLanes - 1 - turn;
      if (!group.done[i]) {
        resume(group, i);
      }
      if (group.failure) {
        return group.failure;
      }
    }
    // Every lane has now ended or waits. Whoever waits for one that ended
    // would wait for ever: Metal leaves that undefined.
    if (group.live > 0 && group.live < kLanes && group.arrived == group.live) {
      return "the lanes of a simdgroup do not meet at one collective function";
    }
  }
  return nullptr;
}

int current_lane() {
  return simdgroup().current;
}

uint64_t current_simdgroup() {
  return simdgroup().serial;
}

void* slots() {
  return simdgroup().slots;
}

bool arrive(const Site& site) {
  Simdgroup& group = simdgroup();
  if (group.arrived == 0) {
    group.site = site;
  } else if (
      group.site.line() != site.line() ||
      group.site.column() != site.column() ||
      std::strcmp(group.site.file_name(), site.file_name()) != 0) {
    fail("the lanes of a simdgroup do not meet at one call of a collective");
  }
  return ++group.arrived == kLanes;
}

void release() {
  simdgroup().arrived = 0;
  simdgroup().generation++;
}

void wait() {
  Simdgroup& group = simdgroup();
  const unsigned generation = group.generation;
  while (group.generation == generation) {
    leave(group);
  }
}

void fail(const char* why) {
  simdgroup().failure = why;
  leave(simdgroup());
  std::abort(); // a failed simdgroup is not resumed
}

} // namespace overlay
