#include "driver/flight.h"

#include <future>

#include "driver/policy.h"
#include "driver/route.h"
#include "driver/streams.h"

namespace driver {

namespace {

// Holds the device at its first dispatch until it is let go.
class HeldDevice {
 public:
  HeldDevice() {
    fake::set_runner([held = held_.get_future().share()](auto&) {
      held.wait();
    });
  }
  ~HeldDevice() {
    let_go();
    for (size_t i = 0; i < used_.size(); i++) {
      mx::synchronize(used_[i]);
    }
    fake::set_runner(nullptr);
  }

  void let_go() {
    if (!gone_) {
      gone_ = true;
      held_.set_value();
    }
  }
  void use(mx::Stream s) {
    used_.push_back(s);
  }

 private:
  std::promise<void> held_;
  bool gone_{false};
  std::vector<mx::Stream> used_;
};

// products of every stream in turn; each stream's are a chain of their own
std::vector<mx::array> chains(
    const Product& p,
    const Weights& w,
    int m,
    const std::vector<mx::Stream>& streams,
    int length) {
  std::vector<mx::array> ends;
  for (auto s : streams) {
    auto x = unread(p.x_shape(m), p.type);
    for (int i = 0; i < length; i++) {
      x = product(p, x, w, s);
    }
    ends.push_back(x);
  }
  return ends;
}

} // namespace

Json flight(const Json& request) {
  auto p = Product::from(request);
  auto w = unread_weights(p);
  int m = request.at("m");
  std::vector<mx::Stream> streams;
  for (size_t number : request.at("streams")) {
    streams.push_back(stream(number));
  }

  HeldDevice device;
  for (auto s : streams) {
    device.use(s);
    mx::async_eval(product(p, unread(p.x_shape(m), p.type), w, s));
  }
  auto graph = chains(p, w, m, streams, request.at("length"));
  fake::take_dispatches();

  int encoded = 0;
  int change_at = request.at("change_at");
  fake::on_dispatch([&](const fake::Dispatch&) {
    if (encoded++ == change_at) {
      std::async(std::launch::async, set_policy, request.at("change")).get();
    }
  });
  try {
    mx::async_eval(graph);
  } catch (...) {
    fake::on_dispatch(nullptr);
    throw;
  }
  fake::on_dispatch(nullptr);

  Json list = Json::array();
  for (auto& dispatch : fake::take_dispatches()) {
    list.push_back(describe(dispatch, Detail::Kernel));
  }
  return {{"dispatches", list}};
}

} // namespace driver
