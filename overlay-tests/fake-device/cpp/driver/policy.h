// The overlay's policies and counters, where the tree has them.
#pragma once

#include <functional>
#include <optional>

#include "driver/shape.h"

namespace driver {

bool has_policies();

// Sets request["set"] (null takes the setting back) for request["stream"], or
// for the process where none is named. Says whether that can have an effect.
Json set_policy(const Json& request);

// What dispatches chose since the last call, by mode and kernel family.
Json take_counts();

} // namespace driver
