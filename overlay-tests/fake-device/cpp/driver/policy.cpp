#include "driver/policy.h"

#include "driver/streams.h"

#if __has_include("mlx/backend/common/qmv_policy.h")

#include "mlx/backend/common/qmv_policy.h"

namespace driver {

namespace {

std::optional<mx::QmvPolicy> policy(const Json& name) {
  if (name.is_null()) {
    return std::nullopt;
  }
  auto text = name.get<std::string>();
  if (text == "wide") {
    return mx::QmvPolicy::wide;
  }
  if (text == "narrow") {
    return mx::QmvPolicy::narrow;
  }
  if (text == "streamed") {
    return mx::QmvPolicy::streamed;
  }
  throw std::invalid_argument("no such policy: " + text);
}

Json counts(mx::QmvMode mode) {
  return {
      {"quad", mx::qmv_dispatches(mode, mx::QmvFamily::quad)},
      {"single", mx::qmv_dispatches(mode, mx::QmvFamily::single)},
      {"narrow", mx::qmv_dispatches(mode, mx::QmvFamily::narrow)},
      {"wide", mx::qmv_dispatches(mode, mx::QmvFamily::wide)},
      {"streamed", mx::qmv_dispatches(mode, mx::QmvFamily::streamed)}};
}

} // namespace

bool has_policies() {
  return true;
}

Json set_policy(const Json& request) {
  auto wanted = policy(request.at("set"));
  bool effect = request.contains("stream")
      ? mx::set_qmv_policy(stream(request["stream"]), wanted)
      : mx::set_qmv_policy(wanted);
  return {{"effect", effect}};
}

Json take_counts() {
  Json all = {
      {"affine", counts(mx::QmvMode::affine)}, {"fp", counts(mx::QmvMode::fp)}};
  mx::reset_qmv_dispatches();
  return all;
}

} // namespace driver

#else

namespace driver {

bool has_policies() {
  return false;
}

Json set_policy(const Json&) {
  throw std::logic_error("this tree has no policies");
}

Json take_counts() {
  throw std::logic_error("this tree has no counters");
}

} // namespace driver

#endif
