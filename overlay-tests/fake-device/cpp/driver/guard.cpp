#include "driver/guard.h"

#include "driver/streams.h"

#if __has_include("mlx/backend/common/qmv_guard.h")

#include "mlx/backend/common/qmv_guard.h"

namespace driver {

namespace {

mx::QmvCell cell(const Json& request) {
  auto p = Product::from(request);
  return mx::QmvCell{
      p.type.val(),
      p.bits,
      p.group,
      request.at("vectors"),
      request.at("fast"),
      p.batch > 1};
}

const char* name(mx::Dtype::Val type) {
  if (type == mx::float32.val()) {
    return "float32";
  }
  return type == mx::float16.val() ? "float16" : "bfloat16";
}

Json refused_cells() {
  Json list = Json::array();
  for (auto& c : mx::take_refused_qmv_cells()) {
    list.push_back(
        {{"type", name(c.type)},
         {"bits", c.bits},
         {"group", c.group_size},
         {"vectors", c.vectors},
         {"fast", c.fast},
         {"batched", c.batched}});
  }
  return list;
}

} // namespace

Json guard(const Json& request) {
  if (request.contains("on")) {
    mx::set_qmv_guard(request["on"]);
  }
  if (request.contains("holds")) {
    mx::certify_qmv_cell(cell(request), request["holds"]);
  }
  if (request.contains("trial")) {
    auto& number = request["trial"];
    mx::set_qmv_trial_stream(
        number.is_null() ? std::nullopt
                         : std::optional<mx::Stream>(stream(number)));
  }
  return {
      {"refused", mx::qmv_refused_dispatches()}, {"cells", refused_cells()}};
}

} // namespace driver

#else

namespace driver {

Json guard(const Json&) {
  throw std::logic_error("this tree has no guard");
}

} // namespace driver

#endif
