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

Json route_one(
    const Product& p,
    int m,
    const Weights& w,
    mx::Stream s,
    Detail detail) {
  auto result = product(p, unread(p.x_shape(m), p.type), w, s);
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
  fake::take_dispatches();
  Json routes = Json::array();
  for (int m : request.at("m")) {
    routes.push_back(route_one(p, m, w, s, detail));
  }
  mx::synchronize(s);
  return {{"routes", routes}};
}

} // namespace driver
