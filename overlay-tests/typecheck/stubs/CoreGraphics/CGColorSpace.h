// What metal-cpp asks of CoreGraphics' color spaces: the name of a type.
#pragma once

typedef struct CGColorSpace* CGColorSpaceRef;
