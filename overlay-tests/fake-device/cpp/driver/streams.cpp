#include "driver/streams.h"

#include "mlx/backend/metal/device.h"

namespace driver {

namespace {

std::vector<mx::Stream>& streams() {
  static std::vector<mx::Stream> streams{mx::default_stream(mx::Device::gpu)};
  return streams;
}

} // namespace

mx::Stream stream(size_t number) {
  return streams().at(number);
}

size_t make_stream() {
  streams().push_back(mx::new_stream(mx::Device::gpu));
  return streams().size() - 1;
}

size_t stream_of(const void* queue) {
  for (size_t i = 0; i < streams().size(); i++) {
    auto& encoder = mx::metal::get_command_encoder(streams()[i]);
    if (encoder.get_command_buffer()->commandQueue() == queue) {
      return i;
    }
  }
  throw std::logic_error("a dispatch on a queue of no stream");
}

} // namespace driver
