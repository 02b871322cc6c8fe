// Apple silicon has pages of 16 KiB; MLX rounds its allocations to them.
#pragma once

#include <cstdint>

typedef std::uintptr_t vm_size_t;
constexpr vm_size_t vm_page_size = 16384;
