// All that a unit of kernels includes and that no laid tree changes: compiled
// once a run, ahead of the units (Workshop::prefix).
#pragma once

#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>

#include "registry.h"

#include "mlx/backend/metal/kernels/utils.h"
#include "mlx/backend/metal/kernels/steel/gemm/gemm.h"
