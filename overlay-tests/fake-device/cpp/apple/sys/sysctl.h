// MLX asks sysctl for the memory size. fake/device.cpp answers.
#pragma once

#include <cstddef>

extern "C" int sysctlbyname(
    const char* name,
    void* value,
    size_t* size,
    void* new_value,
    size_t new_size);
