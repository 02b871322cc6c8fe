// Types named by metal-cpp and never used on this path.
#pragma once

typedef double CFTimeInterval;
typedef const struct __CFString* CFStringRef;
extern "C" CFStringRef __CFStringMakeConstantString(const char* text);
