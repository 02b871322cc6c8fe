// The GPU streams of this process, by number in order of making; 0 is the
// default stream.
#pragma once

#include "driver/shape.h"

namespace driver {

mx::Stream stream(size_t number);
size_t make_stream();

// The number of the stream that owns a command queue of the fake device.
size_t stream_of(const void* queue);

} // namespace driver
