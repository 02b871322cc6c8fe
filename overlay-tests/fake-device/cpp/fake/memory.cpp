#include "fake/memory.h"

#include <sys/mman.h>
#include <new>

namespace fake {

// Only its address matters to MLX: a buffer from a heap is not wired alone.
class Heap : public Object {
 public:
  Heap() : Object("MTLHeap") {}

  Buffer* new_buffer(unsigned long length, MTL::ResourceOptions) {
    return new Buffer(length, this);
  }
  // The heap MLX asks for when it starts: one page is as good.
  unsigned long size() const {
    return 16384;
  }
};

namespace {

class HeapDescriptor : public Object {
 public:
  HeapDescriptor() : Object("MTLHeapDescriptor") {}
  void set_size(unsigned long) {}
  void set_options(MTL::ResourceOptions) {}
};

class ResidencySet : public Object {
 public:
  ResidencySet() : Object("MTLResidencySet") {}
  void change(const Object*) {}
  void apply() {}
};

class ResidencySetDescriptor : public Object {
 public:
  ResidencySetDescriptor() : Object("MTLResidencySetDescriptor") {}
};

Object* new_heap_descriptor() {
  return new HeapDescriptor;
}

Object* new_residency_set_descriptor() {
  return new ResidencySetDescriptor;
}

const Methods buffer_methods(
    "MTLBuffer",
    {{"contents", method<&Buffer::contents>()},
     {"length", method<&Buffer::length>()},
     {"allocatedSize", method<&Buffer::length>()},
     {"heap", method<&Buffer::heap>()},
     {"storageMode", method<&Buffer::storage_mode>()}});

const Methods heap_methods(
    "MTLHeap",
    {{"newBufferWithLength:options:", method<&Heap::new_buffer>()},
     {"allocatedSize", method<&Heap::size>()}});

const Methods heap_descriptor_methods(
    "MTLHeapDescriptor",
    {{"setSize:", method<&HeapDescriptor::set_size>()},
     {"setResourceOptions:", method<&HeapDescriptor::set_options>()}},
    new_heap_descriptor);

const Methods residency_set_methods(
    "MTLResidencySet",
    {{"addAllocation:", method<&ResidencySet::change>()},
     {"removeAllocation:", method<&ResidencySet::change>()},
     {"requestResidency", method<&ResidencySet::apply>()},
     {"commit", method<&ResidencySet::apply>()}});

const Methods residency_set_descriptor_methods(
    "MTLResidencySetDescriptor",
    {},
    new_residency_set_descriptor);

} // namespace

// Mapped, so that a large matrix nobody reads costs no memory.
Buffer::Buffer(size_t length, Heap* heap)
    : Object("MTLBuffer"), length_(length), heap_(heap), owned_(true) {
  bytes_ = mmap(
      nullptr,
      length,
      PROT_READ | PROT_WRITE,
      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
      -1,
      0);
  if (bytes_ == MAP_FAILED) {
    throw std::bad_alloc();
  }
}

Buffer::Buffer(void* bytes, size_t length)
    : Object("MTLBuffer"), bytes_(bytes), length_(length), owned_(false) {}

Buffer::~Buffer() {
  if (owned_) {
    munmap(bytes_, length_);
  }
}

Object* new_heap() {
  return new Heap;
}

Object* new_residency_set() {
  return new ResidencySet;
}

} // namespace fake
