#include "driver/route.h"

#include "driver/streams.h"

namespace driver {

namespace {

Json arguments(const fake::Dispatch& dispatch) {
  Json list = Json::object();
  for (auto& [index, argument] : dispatch.arguments) {
    auto key = std::to_string(index);
    if (argument.buffer) {
      list[key] = {
          {"buffer", argument.buffer->length()}, {"offset", argument.offset}};
    } else {
      list[key] = {{"bytes", argument.bytes}};
    }
  }
  return list;
}

// x as a user may have it: whole, or a view of something larger that starts at
// its second or third value, or whose rows or matrices lie apart.
mx::array
unread_x(const Product& p, int m, const std::string& view, mx::Stream s) {
  auto shape = p.x_shape(m);
  if (view == "shifted" || view == "shifted_by_two") {
    int by = view == "shifted" ? 1 : 2;
    int size = p.batch * m * p.k;
    auto flat = mx::slice(unread({size + by}, p.type), {by}, {size + by}, s);
    return mx::reshape(flat, shape, s);
  }
  if (view == "matrices_apart" && p.batch > 1) {
    int64_t step = m * p.k + 1;
    auto flat = unread({p.batch * static_cast<int>(step)}, p.type);
    return mx::as_strided(flat, shape, {step, p.k, 1}, 0, s);
  }
  if (view == "apart") {
    auto wider = shape;
    wider.back() += 1;
    auto start = mx::Shape(shape.size(), 0);
    return mx::slice(unread(wider, p.type), start, shape, s);
  }
  return unread(shape, p.type);
}

Json route_one(
    const Product& p,
    const mx::array& x,
    const Weights& w,
    mx::Stream s,
    Detail detail) {
  auto result = product(p, x, w, s);
  try {
    mx::async_eval(result);
  } catch (const std::exception& e) {
    fake::take_dispatches();
    return {{"refused", e.what()}};
  }
  Json list = Json::array();
  for (auto& dispatch : fake::take_dispatches()) {
    list.push_back(describe(dispatch, detail));
  }
  return list;
}

} // namespace

Json describe(const fake::Dispatch& d, Detail detail) {
  Json json = {
      {"kernel", d.kernel.name},
      {"grid", d.grid},
      {"group", d.group},
      {"stream", stream_of(d.queue)}};
  if (detail == Detail::Arguments) {
    json["arguments"] = arguments(d);
  }
  if (d.grid_in_threads) {
    json["grid_in_threads"] = true;
  }
  if (!d.kernel.definition.empty()) {
    json["definition"] = d.kernel.definition;
    json["source"] = d.kernel.source;
  }
  return json;
}

Json route(const Json& request) {
  auto p = Product::from(request);
  auto s = stream(request.value("stream", 0));
  auto detail = request.value("arguments", false) ? Detail::Arguments
                                                  : Detail::Kernel;
  auto w = unread_weights(p);
  auto view = request.value("view", "whole");
  fake::take_dispatches();
  Json routes = Json::array();
  for (int m : request.at("m")) {
    routes.push_back(route_one(p, unread_x(p, m, view, s), w, s, detail));
  }
  mx::synchronize(s);
  return {{"routes", routes}};
}

} // namespace driver
