// Before the CPU backend's JIT, which is not used here: clang 16 does not know
// every feature it asks for.
#pragma once

#define __builtin_cpu_supports(feature) 0
