// The quantized product a request asks for, and arrays of its shapes.
#pragma once

#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "mlx/mlx.h"

namespace driver {

namespace mx = mlx::core;
using Json = nlohmann::json;

struct Product {
  std::string mode; // affine, mxfp4, mxfp8, nvfp4
  int bits;
  int group; // values sharing a scale
  mx::Dtype type; // of x
  int k;
  int n;
  int batch; // matrices of x: 1 gives it two dimensions, more gives it three
  bool transpose;
  bool one_w; // w has two dimensions, whatever the batch

  static Product from(const Json& request);

  // Shapes with the batch dimension in front where there is one, and w has it.
  mx::Shape x_shape(int m) const;
  mx::Shape w_shape() const;
  mx::Shape packed_shape() const;
  mx::Shape scales_shape() const;
};

// w as MLX keeps it: packed values, scales and, in affine mode, biases.
struct Weights {
  mx::array packed;
  mx::array scales;
  std::optional<mx::array> biases;
};

mx::array product(
    const Product& p,
    const mx::array& x,
    const Weights& w,
    mx::StreamOrDevice stream);

// Allocated and never read: routing looks at shapes alone.
mx::array unread(mx::Shape shape, mx::Dtype type);
Weights unread_weights(const Product& p);

} // namespace driver
