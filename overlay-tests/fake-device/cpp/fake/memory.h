// Buffers, heaps and residency sets. Memory is the host's, and unified.
#pragma once

#include <Metal/Metal.hpp>

#include "fake/objc.h"

namespace fake {

class Heap;

class Buffer : public Object {
 public:
  explicit Buffer(size_t length, Heap* heap = nullptr);
  Buffer(void* bytes, size_t length);
  ~Buffer() override;

  void* contents() const {
    return bytes_;
  }
  size_t length() const {
    return length_;
  }
  Heap* heap() const {
    return heap_;
  }
  MTL::StorageMode storage_mode() const {
    return MTL::StorageModeShared;
  }

 private:
  void* bytes_;
  size_t length_;
  Heap* heap_{nullptr};
  bool owned_;
};

Object* new_heap();
Object* new_residency_set();

} // namespace fake
