// The C ABI of a kernel library: run one dispatch by host name.
//
// The parity programs use it, and so can a fake Metal device: a dispatch is
// the host name, the grid in threadgroups, the threadgroup in threads, and a
// pointer a buffer index (bytes set with setBytes are a pointer too).
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Runs the dispatch to its end. Returns null, or in plain words why not (a
// name that is not in this library, a threadgroup that is not whole simdgroups,
// lanes that do not meet). A text of the library's own: do not free it.
// `buffers` has `count` entries, null where the caller set none; at most 31.
// Thread-safe: each calling thread has its own fibers.
const char* overlay_kernel_run(
    const char* host_name,
    const uint32_t grid[3],
    const uint32_t group[3],
    void* const* buffers,
    uint32_t count);

// 1 where the library has the kernel.
int overlay_kernel_exists(const char* host_name);

#ifdef __cplusplus
}
#endif
