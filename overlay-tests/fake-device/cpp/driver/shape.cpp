#include "driver/shape.h"

namespace driver {

namespace {

mx::Dtype dtype(const std::string& name) {
  if (name == "float32") {
    return mx::float32;
  }
  if (name == "float16") {
    return mx::float16;
  }
  if (name == "bfloat16") {
    return mx::bfloat16;
  }
  throw std::invalid_argument("no product of type " + name);
}

} // namespace

Product Product::from(const Json& r) {
  return Product{
      r.at("mode"),
      r.at("bits"),
      r.at("group"),
      dtype(r.at("type")),
      r.at("k"),
      r.at("n"),
      r.value("batch", 1),
      r.value("transpose", true),
      r.value("one_w", false)};
}

mx::Shape Product::x_shape(int m) const {
  return batch > 1 ? mx::Shape{batch, m, k} : mx::Shape{m, k};
}

mx::Shape Product::w_shape() const {
  auto [rows, columns] = transpose ? std::pair(n, k) : std::pair(k, n);
  return batch > 1 && !one_w ? mx::Shape{batch, rows, columns}
                             : mx::Shape{rows, columns};
}

mx::Shape Product::packed_shape() const {
  auto shape = w_shape();
  shape.back() = shape.back() * bits / 32;
  return shape;
}

mx::Shape Product::scales_shape() const {
  auto shape = w_shape();
  shape.back() /= group;
  return shape;
}

mx::array product(
    const Product& p,
    const mx::array& x,
    const Weights& w,
    mx::StreamOrDevice stream) {
  return mx::quantized_matmul(
      x,
      w.packed,
      w.scales,
      w.biases,
      p.transpose,
      p.group,
      p.bits,
      p.mode,
      stream);
}

mx::array unread(mx::Shape shape, mx::Dtype type) {
  size_t size = mx::size_of(type);
  for (auto dim : shape) {
    size *= dim;
  }
  return mx::array(mx::allocator::malloc(size), std::move(shape), type);
}

Weights unread_weights(const Product& p) {
  bool affine = p.mode == "affine";
  auto scales = unread(p.scales_shape(), affine ? p.type : mx::uint8);
  std::optional<mx::array> biases;
  if (affine) {
    biases = unread(p.scales_shape(), p.type);
  }
  return Weights{unread(p.packed_shape(), mx::uint32), scales, biases};
}

} // namespace driver
