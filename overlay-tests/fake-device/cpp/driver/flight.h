// A policy that changes, from another thread, while work is in flight.
#pragma once

#include "driver/shape.h"

namespace driver {

// Evaluates one graph in which the products of request["streams"] take turns,
// request["length"] on each. When the dispatch numbered request["change_at"]
// is being encoded, another thread carries out request["change"] (a policy
// request), while the device still holds the work given to it before. Gives
// the dispatches in order.
Json flight(const Json& request);

} // namespace driver
