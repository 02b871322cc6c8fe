// Products computed: what the device was asked to run is run, by the kernel
// library that request["library"] named.
#pragma once

#include "driver/shape.h"

namespace driver {

// From here on the device runs dispatches through a kernel library, whose C
// ABI is `overlay_kernel_run`.
void use_library(const std::string& path);

// One random product, as a user has it: a block of rows in one call, the same
// rows one by one, and the block on the CPU backend. Rows come as the bytes of
// their values, in hexadecimal.
Json compute(const Json& request);

// The rows request["from"] up to request["to"] of the same random x, in one
// call.
Json compute_rows(const Json& request);

} // namespace driver
