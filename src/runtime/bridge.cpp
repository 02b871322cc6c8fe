// Part of mlx-overlay: arrays, streams and quantized products of MLX.

#include "mlx-overlay/src/runtime/bridge.h"

#include <cstring>
#include <limits>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__APPLE__)
#include <sys/sysctl.h>
#else
#include <sys/utsname.h>
#endif

#include "mlx-overlay/src/runtime/bridge.rs.h"
#include "mlx/backend/metal/metal.h"
#include "mlx/device.h"
#include "mlx/dtype_utils.h"
#include "mlx/ops.h"
#include "mlx/stream.h"
#include "mlx/transforms.h"
#include "mlx/version.h"

// Made by the build that made the library, so that a bridge and a library of
// different builds are told apart.
extern "C" const char mlx_overlay_library_key[];

namespace mx = mlx::core;

namespace mlx_overlay {

namespace {

mx::Dtype dtype_of(ElementKind element) {
  switch (element) {
    case ElementKind::Float32:
      return mx::float32;
    case ElementKind::Float16:
      return mx::float16;
    case ElementKind::Bfloat16:
      return mx::bfloat16;
    case ElementKind::Uint32:
      return mx::uint32;
    default:
      throw std::invalid_argument("[bridge] Not a type that crosses over.");
  }
}

ElementKind element_of(mx::Dtype dtype) {
  if (dtype == mx::float32) {
    return ElementKind::Float32;
  } else if (dtype == mx::float16) {
    return ElementKind::Float16;
  } else if (dtype == mx::bfloat16) {
    return ElementKind::Bfloat16;
  } else if (dtype == mx::uint32) {
    return ElementKind::Uint32;
  }
  return ElementKind::Other;
}

mx::Device device_of(bool gpu) {
  return gpu ? mx::Device::gpu : mx::Device::cpu;
}

mx::Stream stream_of(StreamKey key) {
  return mx::Stream(key.index, device_of(key.gpu));
}

std::unique_ptr<Array> boxed(Array array) {
  return std::make_unique<Array>(std::move(array));
}

std::optional<Array> biases_of(const Parts& parts) {
  return parts.biases ? std::optional<Array>(*parts.biases) : std::nullopt;
}

} // namespace

std::unique_ptr<Array> array_from_bytes(
    rust::Slice<const uint8_t> bytes,
    rust::Slice<const int32_t> shape,
    ElementKind element) {
  auto dtype = dtype_of(element);
  uint64_t size = 1;
  for (auto dim : shape) {
    if (dim < 0) {
      throw std::invalid_argument("[array] A dimension is negative.");
    }
    size *= static_cast<uint64_t>(dim);
    if (size > std::numeric_limits<int32_t>::max()) {
      throw std::invalid_argument("[array] More than 2^31 - 1 elements.");
    }
  }
  if (bytes.size() != size * dtype.size()) {
    std::ostringstream msg;
    msg << "[array] The shape wants " << size << " elements of "
        << int(dtype.size()) << " bytes, and there are " << bytes.size()
        << " bytes.";
    throw std::invalid_argument(msg.str());
  }
  auto buffer = mx::allocator::malloc(bytes.size());
  if (buffer.ptr() == nullptr && !bytes.empty()) {
    throw std::runtime_error("[array] There is no memory for it.");
  }
  Array array(buffer, mx::Shape(shape.begin(), shape.end()), dtype);
  if (!bytes.empty()) {
    std::memcpy(array.data<uint8_t>(), bytes.data(), bytes.size());
  }
  return boxed(std::move(array));
}

void array_bytes(const Array& array, rust::Slice<uint8_t> out) {
  // Reading needs rows without gaps; a copy is made only where there are any.
  Array rows = array;
  mx::eval(std::vector<Array>{rows});
  if (!rows.flags().row_contiguous) {
    rows = mx::contiguous(array);
    mx::eval(std::vector<Array>{rows});
  }
  if (out.size() != rows.nbytes()) {
    throw std::invalid_argument("[array] The slice has another length.");
  }
  if (!out.empty()) {
    std::memcpy(out.data(), rows.data<uint8_t>(), out.size());
  }
}

rust::Vec<int32_t> array_shape(const Array& array) {
  rust::Vec<int32_t> shape;
  for (auto dim : array.shape()) {
    shape.push_back(dim);
  }
  return shape;
}

ElementKind array_element(const Array& array) {
  return element_of(array.dtype());
}

rust::String array_element_name(const Array& array) {
  return mx::dtype_to_string(array.dtype());
}

size_t array_bytes_len(const Array& array) {
  return array.nbytes();
}

std::unique_ptr<Array> array_handle(const Array& array) {
  return boxed(array);
}

void eval(const Array& array) {
  mx::eval(std::vector<Array>{array});
}

StreamKey new_stream(bool gpu) {
  auto device = device_of(gpu);
  if (!mx::is_available(device)) {
    throw std::invalid_argument(
        gpu ? "[new_stream] This MLX has no GPU backend, or no GPU."
            : "[new_stream] This MLX has no CPU backend.");
  }
  auto stream = mx::new_stream(device);
  return StreamKey{stream.index, gpu};
}

void synchronize(StreamKey stream) {
  mx::synchronize(stream_of(stream));
}

Parts quantize(const Array& weight, const Scheme& scheme, StreamKey stream) {
  auto parts = mx::quantize(
      weight,
      scheme.group_size,
      scheme.bits,
      std::string(scheme.mode),
      std::nullopt,
      stream_of(stream));
  if (parts.size() != 2 && parts.size() != 3) {
    throw std::runtime_error("[quantize] MLX gave another number of arrays.");
  }
  Parts result;
  result.packed = boxed(parts[0]);
  result.scales = boxed(parts[1]);
  if (parts.size() == 3) {
    result.biases = boxed(parts[2]);
  }
  return result;
}

std::unique_ptr<Array>
dequantize(const Parts& parts, const Scheme& scheme, StreamKey stream) {
  return boxed(
      mx::dequantize(
          *parts.packed,
          *parts.scales,
          biases_of(parts),
          scheme.group_size,
          scheme.bits,
          std::string(scheme.mode),
          std::nullopt,
          std::nullopt,
          stream_of(stream)));
}

std::unique_ptr<Array> quantized_matmul(
    const Array& x,
    const Parts& parts,
    const Scheme& scheme,
    bool transpose,
    StreamKey stream) {
  // What MLX does not look at: its kernels divide by lengths, count in int, and
  // take the first matrix of a stack where x has no stack of its own.
  if (x.size() == 0 || parts.packed->size() == 0) {
    throw std::invalid_argument("[quantized_matmul] An array has no elements.");
  }
  if (parts.packed->ndim() > 2 && x.ndim() < 3) {
    throw std::invalid_argument(
        "[quantized_matmul] The matrix is a stack, and x has no dimension for it.");
  }
  auto product = mx::quantized_matmul(
      x,
      *parts.packed,
      *parts.scales,
      biases_of(parts),
      transpose,
      scheme.group_size,
      scheme.bits,
      std::string(scheme.mode),
      stream_of(stream));
  if (product.size() > std::numeric_limits<int32_t>::max()) {
    throw std::invalid_argument(
        "[quantized_matmul] More than 2^31 - 1 elements.");
  }
  return boxed(std::move(product));
}

rust::String library_key() {
  return mlx_overlay_library_key;
}

rust::String mlx_version() {
  return mx::version();
}

bool metal_is_available() {
  return mx::metal::is_available();
}

void set_metallib_path(rust::Str path) {
  mx::metal::set_metallib_path(std::string(path));
}

int32_t device_count(bool gpu) {
  return mx::device_count(gpu ? mx::Device::gpu : mx::Device::cpu);
}

rust::Vec<Property> device_properties(bool gpu) {
  rust::Vec<Property> properties;
  for (const auto& [name, value] : mx::device_info(device_of(gpu))) {
    std::string text = std::holds_alternative<std::string>(value)
        ? std::get<std::string>(value)
        : std::to_string(std::get<size_t>(value));
    properties.push_back(
        Property{rust::String::lossy(name), rust::String::lossy(text)});
  }
  return properties;
}

rust::String os_build() {
#if defined(__APPLE__)
  char build[64] = {0};
  size_t size = sizeof(build) - 1;
  if (sysctlbyname("kern.osversion", build, &size, nullptr, 0) != 0) {
    throw std::runtime_error("[os_build] sysctl knows no kern.osversion.");
  }
  return rust::String::lossy(build);
#else
  utsname name;
  if (uname(&name) != 0) {
    throw std::runtime_error("[os_build] uname failed.");
  }
  return rust::String::lossy(std::string(name.release) + " " + name.version);
#endif
}

} // namespace mlx_overlay
