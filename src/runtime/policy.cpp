// Part of mlx-overlay: the policy of quantized matrix-vector products, where
// the MLX that is linked has one.

#include "mlx-overlay/src/runtime/bridge.h"

#include <optional>
#include <stdexcept>
#include <vector>

#include "mlx-overlay/src/runtime/bridge.rs.h"
#include "mlx/dtype.h"
#include "mlx/stream.h"

#if __has_include("mlx/backend/common/qmv_policy.h")
#include "mlx/backend/common/qmv_policy.h"
#define MLX_OVERLAY_HAS_POLICY 1
#endif

#if __has_include("mlx/backend/common/qmv_guard.h")
#include "mlx/backend/common/qmv_guard.h"
#define MLX_OVERLAY_HAS_GUARD 1
#endif

namespace mx = mlx::core;

namespace mlx_overlay {

#ifdef MLX_OVERLAY_HAS_POLICY

namespace {

constexpr int32_t unset = -1;

std::optional<mx::QmvPolicy> policy_of(int32_t policy) {
  if (policy == unset) {
    return std::nullopt;
  }
  return static_cast<mx::QmvPolicy>(policy);
}

int32_t number_of(std::optional<mx::QmvPolicy> policy) {
  return policy ? static_cast<int32_t>(*policy) : unset;
}

mx::Stream stream_of(StreamKey key) {
  return mx::Stream(key.index, key.gpu ? mx::Device::gpu : mx::Device::cpu);
}

} // namespace

bool has_overlay() {
  return true;
}

bool policy_has_effect() {
  return mx::qmv_policy_has_effect();
}

bool set_process_policy(int32_t policy) {
  return mx::set_qmv_policy(policy_of(policy));
}

bool set_stream_policy(StreamKey stream, int32_t policy) {
  return mx::set_qmv_policy(stream_of(stream), policy_of(policy));
}

int32_t process_policy() {
  return number_of(mx::qmv_policy());
}

int32_t stream_policy(StreamKey stream) {
  return number_of(mx::qmv_policy(stream_of(stream)));
}

int32_t effective_policy(StreamKey stream) {
  return number_of(mx::effective_qmv_policy(stream_of(stream)));
}

uint64_t dispatches(bool fp, int32_t family) {
  return mx::qmv_dispatches(
      fp ? mx::QmvMode::fp : mx::QmvMode::affine,
      static_cast<mx::QmvFamily>(family));
}

void reset_dispatches() {
  mx::reset_qmv_dispatches();
}

#else

namespace {

[[noreturn]] void no_overlay() {
  throw std::runtime_error(
      "[policy] The MLX that is linked was built from a tree without the "
      "overlay's policy.");
}

} // namespace

bool has_overlay() {
  return false;
}

bool policy_has_effect() {
  return false;
}

bool set_process_policy(int32_t) {
  no_overlay();
}

bool set_stream_policy(StreamKey, int32_t) {
  no_overlay();
}

int32_t process_policy() {
  no_overlay();
}

int32_t stream_policy(StreamKey) {
  no_overlay();
}

int32_t effective_policy(StreamKey) {
  no_overlay();
}

uint64_t dispatches(bool, int32_t) {
  no_overlay();
}

void reset_dispatches() {
  no_overlay();
}

#endif

#ifdef MLX_OVERLAY_HAS_GUARD

namespace {

mx::QmvCell cell_of(CellKey key) {
  mx::QmvCell cell;
  switch (key.element) {
    case ElementKind::Float32:
      cell.type = mx::float32.val();
      break;
    case ElementKind::Float16:
      cell.type = mx::float16.val();
      break;
    case ElementKind::Bfloat16:
      cell.type = mx::bfloat16.val();
      break;
    default:
      throw std::invalid_argument("[guard] No kernel has this type.");
  }
  cell.bits = key.bits;
  cell.group_size = key.group_size;
  cell.vectors = key.vectors;
  cell.fast = key.fast;
  cell.batched = key.batched;
  return cell;
}

CellKey key_of(const mx::QmvCell& cell) {
  auto element = cell.type == mx::float32.val() ? ElementKind::Float32
      : cell.type == mx::float16.val()          ? ElementKind::Float16
                                                : ElementKind::Bfloat16;
  return CellKey{
      element,
      cell.bits,
      cell.group_size,
      cell.vectors,
      cell.fast,
      cell.batched};
}

} // namespace

bool has_guard() {
  return true;
}

void set_guard(bool on) {
  mx::set_qmv_guard(on);
}

bool guard_is_on() {
  return mx::qmv_guard();
}

void set_trial_stream(StreamKey stream) {
  mx::set_qmv_trial_stream(stream_of(stream));
}

void clear_trial_stream() {
  mx::set_qmv_trial_stream(std::nullopt);
}

void certify_cell(CellKey cell, bool holds) {
  mx::certify_qmv_cell(cell_of(cell), holds);
}

uint64_t refused_dispatches() {
  return mx::qmv_refused_dispatches();
}

rust::Vec<CellKey> take_refused_cells() {
  rust::Vec<CellKey> cells;
  for (const auto& cell : mx::take_refused_qmv_cells()) {
    cells.push_back(key_of(cell));
  }
  return cells;
}

#else

namespace {

[[noreturn]] void no_guard() {
  throw std::runtime_error(
      "[guard] The MLX that is linked does not ask for certificates where it "
      "dispatches.");
}

} // namespace

bool has_guard() {
  return false;
}

void set_guard(bool) {
  no_guard();
}

bool guard_is_on() {
  no_guard();
}

void set_trial_stream(StreamKey) {
  no_guard();
}

void clear_trial_stream() {
  no_guard();
}

void certify_cell(CellKey, bool) {
  no_guard();
}

uint64_t refused_dispatches() {
  return 0;
}

rust::Vec<CellKey> take_refused_cells() {
  return {};
}

#endif

} // namespace mlx_overlay
