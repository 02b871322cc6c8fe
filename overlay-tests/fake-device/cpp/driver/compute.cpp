#include "driver/compute.h"

#include <dlfcn.h>

#include <mutex>
#include <utility>

#include "driver/route.h"
#include "driver/streams.h"

namespace driver {

namespace {

using Run = const char* (*)(
    const char* host_name,
    const uint32_t grid[3],
    const uint32_t group[3],
    void* const* buffers,
    uint32_t count);

void run(Run kernel_run, const fake::Dispatch& d) {
  if (d.grid_in_threads || !d.kernel.constants.empty()) {
    throw std::runtime_error("no runner for a dispatch such as " + d.kernel.name);
  }
  std::vector<void*> buffers;
  for (auto& [index, argument] : d.arguments) {
    buffers.resize(index + 1);
    if (argument.buffer) {
      auto* start = static_cast<char*>(argument.buffer->contents());
      buffers[index] = start + argument.offset;
    } else {
      buffers[index] = const_cast<uint8_t*>(argument.bytes.data());
    }
  }
  uint32_t grid[3], group[3];
  std::copy(d.grid.begin(), d.grid.end(), grid);
  std::copy(d.group.begin(), d.group.end(), group);
  auto* why = kernel_run(
      d.kernel.name.c_str(), grid, group, buffers.data(), buffers.size());
  if (why) {
    throw std::runtime_error(d.kernel.name + ": " + why);
  }
}

// Why a kernel could not be run. At the pin MLX tells of it only where somebody
// already waits for the event; a result nobody computed must not pass for one.
class Failure {
 public:
  void note(const std::string& why) {
    std::lock_guard lock(mutex_);
    why_ = why;
  }
  void rethrow() {
    std::lock_guard lock(mutex_);
    if (!why_.empty()) {
      throw std::runtime_error(std::exchange(why_, {}));
    }
  }

 private:
  std::mutex mutex_;
  std::string why_;
};

Failure& failure() {
  static auto* failure = new Failure;
  return *failure;
}

void eval(mx::array a) {
  failure().note("");
  mx::eval(a);
  failure().rethrow();
}

std::string hex(const char* bytes, size_t size) {
  static const char* digits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * size);
  for (size_t i = 0; i < size; i++) {
    auto byte = static_cast<unsigned char>(bytes[i]);
    text.push_back(digits[byte >> 4]);
    text.push_back(digits[byte & 15]);
  }
  return text;
}

// Each row of the last axis.
Json rows(mx::array a) {
  a = mx::contiguous(a, false, mx::Device::cpu);
  mx::eval(a);
  size_t size = a.shape(-1) * a.itemsize();
  Json list = Json::array();
  auto* bytes = a.data<char>();
  for (size_t at = 0; at < a.nbytes(); at += size) {
    list.push_back(hex(bytes + at, size));
  }
  return list;
}

// Random, and quantized on the CPU. The scale of the weights keeps sums near
// one, where a half has no bits to spare.
Weights random_weights(const Product& p, uint64_t seed) {
  auto w = mx::random::normal(
      p.w_shape(),
      p.type,
      0.0,
      0.05,
      mx::random::key(seed),
      mx::Device::cpu);
  auto parts = mx::quantize(
      w, p.group, p.bits, p.mode, std::nullopt, mx::Device::cpu);
  std::optional<mx::array> biases;
  if (parts.size() == 3) {
    biases = parts[2];
  }
  return Weights{parts[0], parts[1], biases};
}

mx::array random_x(const Product& p, int m, uint64_t seed) {
  return mx::random::normal(
      p.x_shape(m),
      p.type,
      0.0,
      1.0,
      mx::random::key(seed + 1),
      mx::Device::cpu);
}

mx::array some_rows(const mx::array& x, int from, int to) {
  auto start = mx::Shape(x.ndim(), 0);
  auto stop = x.shape();
  start[x.ndim() - 2] = from;
  stop[x.ndim() - 2] = to;
  return mx::slice(x, start, stop, mx::Device::cpu);
}

std::vector<std::string> kernels() {
  std::vector<std::string> names;
  for (auto& dispatch : fake::take_dispatches()) {
    names.push_back(dispatch.kernel.name);
  }
  return names;
}

} // namespace

void use_library(const std::string& path) {
  auto* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    throw std::runtime_error(dlerror());
  }
  auto kernel_run =
      reinterpret_cast<Run>(dlsym(library, "overlay_kernel_run"));
  if (!kernel_run) {
    throw std::runtime_error(dlerror());
  }
  fake::set_runner([=](const fake::Dispatch& d) {
    try {
      run(kernel_run, d);
    } catch (const std::exception& e) {
      failure().note(e.what());
      throw;
    }
  });
}

Json compute(const Json& request) {
  auto p = Product::from(request);
  auto s = stream(request.value("stream", 0));
  int m = request.at("m");
  uint64_t seed = request.at("seed");
  auto w = random_weights(p, seed);
  auto x = random_x(p, m, seed);
  mx::eval(x, w.packed, w.scales);
  fake::take_dispatches();

  auto block = product(p, x, w, s);
  eval(block);
  auto block_kernels = kernels();

  Json chain = Json::array();
  for (int i = 0; i < m; i++) {
    auto one = product(p, some_rows(x, i, i + 1), w, s);
    eval(one);
    chain.push_back(rows(one));
  }
  auto chain_kernels = kernels();

  return {
      {"block", rows(block)},
      {"chain", chain},
      {"cpu", rows(product(p, x, w, mx::Device::cpu))},
      {"block_kernels", block_kernels},
      {"chain_kernels", chain_kernels}};
}

Json compute_rows(const Json& request) {
  auto p = Product::from(request);
  auto s = stream(request.value("stream", 0));
  uint64_t seed = request.at("seed");
  auto w = random_weights(p, seed);
  auto x = random_x(p, request.at("m"), seed);
  auto some = some_rows(x, request.at("from"), request.at("to"));
  auto result = product(p, some, w, s);
  eval(result);
  return {{"rows", rows(result)}};
}

} // namespace driver
