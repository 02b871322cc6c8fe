// The overlay's guard of the policy streamed, where the tree has it.
#pragma once

#include "driver/shape.h"

namespace driver {

// Does what is asked, in this order: turns the guard request["on"] or off;
// gives the verdict request["holds"] on the cell that the request's product,
// "vectors" and "fast" name; makes request["trial"] the stream that certifies
// (null: none). Gives the dispatches refused so far and the cells refused since
// the last call.
Json guard(const Json& request);

} // namespace driver
