// Names of the steel GEMM that quantized.h mentions and no qmv kernel uses.
#pragma once

namespace mlx {
namespace steel {

template <typename...>
struct TransformNone;

template <
    typename T,
    typename U,
    int BM,
    int BN,
    int BK,
    int WM,
    int WN,
    bool transpose_a,
    bool transpose_b,
    int lda_tgp,
    int ldb_tgp>
struct BlockMMA;

template <
    typename T,
    int BROWS,
    int BCOLS,
    int dst_ld,
    int reduction_dim,
    int tgp_size,
    int alignment = 1,
    int n_reads = 0>
struct BlockLoader;

} // namespace steel
} // namespace mlx
