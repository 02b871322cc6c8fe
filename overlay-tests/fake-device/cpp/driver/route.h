// Which kernels MLX asks the device for: nothing is computed.
#pragma once

#include "driver/shape.h"
#include "fake/dispatch.h"

namespace driver {

// For each M of request["m"], the dispatches of one quantized product; with
// their arguments where request["arguments"]. x is whole, or a view that is
// "shifted" by one value or whose rows lie "apart", as request["view"] says.
Json route(const Json& request);

// What is told of a dispatch: what is asked to run, or its arguments too.
enum class Detail { Kernel, Arguments };

// A dispatch as the requester sees it.
Json describe(const fake::Dispatch& dispatch, Detail detail);

} // namespace driver
