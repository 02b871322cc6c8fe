// What metal-cpp asks of CoreFoundation: names of types, no function.
#pragma once

typedef double CFTimeInterval;
typedef const struct __CFString* CFStringRef;
