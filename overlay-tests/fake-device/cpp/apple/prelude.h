// Before every MLX host file: headers libc++ brings along unasked, and Apple's
// version check, which here always has the newest system.
#pragma once

#include <cmath>
#include <optional>

#define __builtin_available(...) 1
