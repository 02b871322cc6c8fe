// What metal-cpp asks of CoreGraphics' geometry.
#pragma once

typedef double CGFloat;

struct CGSize {
  CGFloat width;
  CGFloat height;
};
typedef struct CGSize CGSize;
