// What metal-cpp asks of IOSurface: the name of a type.
#pragma once

typedef struct __IOSurface* IOSurfaceRef;
