// MLX on the fake device, driven by requests: one JSON object a line on
// standard input, one answer a line on standard output. An answer holds
// "error" where MLX threw.
//
//   mlx_on_fake_device LIBRARY   LIBRARY: the host names of the metallib
//
// MLX_METAL_GPU_ARCH names the architecture, once for the process.
#include <cstdlib>
#include <iostream>

#include "driver/compute.h"
#include "driver/flight.h"
#include "driver/guard.h"
#include "driver/policy.h"
#include "driver/route.h"
#include "driver/streams.h"
#include "mlx/backend/metal/device.h"
#include "mlx/backend/metal/metal.h"

namespace driver {

namespace {

Json answer(const Json& request) {
  auto op = request.at("op").get<std::string>();
  if (op == "architecture") {
    auto& device = mx::metal::device(mx::Device::gpu);
    return {
        {"name", device.get_architecture()},
        {"generation", device.get_architecture_gen()},
        {"policies", has_policies()}};
  }
  if (op == "stream") {
    return {{"stream", make_stream()}};
  }
  if (op == "route") {
    return route(request);
  }
  if (op == "policy") {
    return set_policy(request);
  }
  if (op == "counts") {
    return take_counts();
  }
  if (op == "guard") {
    return guard(request);
  }
  if (op == "flight") {
    return flight(request);
  }
  if (op == "library") {
    use_library(request.at("path"));
    return Json::object();
  }
  if (op == "compute") {
    return compute(request);
  }
  if (op == "rows") {
    return compute_rows(request);
  }
  if (op == "source") {
    return {{"text", fake::jit_sources().at(request.at("number"))}};
  }
  throw std::invalid_argument("no such request: " + op);
}

} // namespace

} // namespace driver

int main(int argc, char** argv) {
  if (argc != 2 || !getenv("MLX_METAL_GPU_ARCH")) {
    std::cerr << "usage: MLX_METAL_GPU_ARCH=NAME mlx_on_fake_device LIBRARY\n";
    return 2;
  }
  mlx::core::metal::set_metallib_path(argv[1]);
  for (std::string line; std::getline(std::cin, line);) {
    driver::Json reply;
    try {
      reply = driver::answer(driver::Json::parse(line));
    } catch (const std::exception& e) {
      reply = {{"error", e.what()}};
    }
    std::cout << reply.dump() << std::endl;
  }
  // Streams and their threads end with the process: MLX leaks its device on
  // purpose, and so must the order of destruction not matter here.
  std::_Exit(0);
}
