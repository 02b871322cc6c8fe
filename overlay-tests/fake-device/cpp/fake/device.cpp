// The device itself, and the C functions that hand it out.
#include <sys/sysctl.h>
#include <cstring>

#include "fake/command.h"
#include "fake/event.h"
#include "fake/foundation.h"
#include "fake/library.h"
#include "fake/memory.h"

namespace fake {

namespace {

constexpr size_t memory_size = 64ull << 30;

class Architecture : public Object {
 public:
  Architecture() : Object("MTLArchitecture") {}
  // MLX_METAL_GPU_ARCH, which every caller sets, comes before this name.
  Object* name() const {
    return (new String("applegpu_g13g"))->autorelease();
  }
};

class Device : public Object {
 public:
  Device() : Object("MTLDevice") {}

  static Device* get() {
    static auto* device = new Device;
    return device;
  }

  Object* name() const {
    return (new String("fake device"))->autorelease();
  }
  Object* architecture() const {
    return (new Architecture)->autorelease();
  }
  bool supports(MTL::GPUFamily) const {
    return true;
  }
  unsigned long max_buffer_length() const {
    return memory_size / 2;
  }
  unsigned long working_set() const {
    return memory_size / 4 * 3;
  }
  Object* new_buffer(unsigned long length, MTL::ResourceOptions) {
    return new Buffer(length);
  }
  Object* new_buffer_no_copy(
      void* bytes,
      unsigned long length,
      MTL::ResourceOptions,
      void*) {
    return new Buffer(bytes, length);
  }
  Object* new_heap(Object*) {
    return fake::new_heap();
  }
  Object* new_residency_set(Object*, NS::Error**) {
    return fake::new_residency_set();
  }
  Object* new_queue() {
    return new CommandQueue;
  }
  Object* new_event() {
    return new SharedEvent;
  }
  Object* new_fence() {
    return new Fence;
  }
  Object* new_library_file(const NS::String* path, NS::Error** error) {
    return Library::from_file(text_of(path), error);
  }
  Object* new_library_source(const NS::String* text, Object*, NS::Error**) {
    return Library::from_source(text_of(text));
  }
};

const Methods architecture_methods(
    "MTLArchitecture",
    {{"name", method<&Architecture::name>()}});

const Methods device_methods(
    "MTLDevice",
    {{"name", method<&Device::name>()},
     {"architecture", method<&Device::architecture>()},
     {"supportsFamily:", method<&Device::supports>()},
     {"maxBufferLength", method<&Device::max_buffer_length>()},
     {"recommendedMaxWorkingSetSize", method<&Device::working_set>()},
     {"newBufferWithLength:options:", method<&Device::new_buffer>()},
     {"newBufferWithBytesNoCopy:length:options:deallocator:",
      method<&Device::new_buffer_no_copy>()},
     {"newHeapWithDescriptor:", method<&Device::new_heap>()},
     {"newResidencySetWithDescriptor:error:",
      method<&Device::new_residency_set>()},
     {"newCommandQueue", method<&Device::new_queue>()},
     {"newSharedEvent", method<&Device::new_event>()},
     {"newFence", method<&Device::new_fence>()},
     {"newLibraryWithFile:error:", method<&Device::new_library_file>()},
     {"newLibraryWithSource:options:error:",
      method<&Device::new_library_source>()},
     {"newComputePipelineStateWithFunction:error:",
      method<&PipelineState::make>()}});

} // namespace

} // namespace fake

extern "C" {

MTL::Device* MTLCreateSystemDefaultDevice() {
  return reinterpret_cast<MTL::Device*>(fake::Device::get()->retain());
}

NS::Array* MTLCopyAllDevices() {
  return reinterpret_cast<NS::Array*>(
      new fake::Array({fake::Device::get()}));
}

NS::Array* MTLCopyAllDevicesWithObserver(NS::Object**, void*) {
  return MTLCopyAllDevices();
}

void MTLRemoveDeviceObserver(const NS::Object*) {}

int sysctlbyname(
    const char* name,
    void* value,
    size_t* size,
    void*,
    size_t) {
  if (strcmp(name, "hw.memsize") == 0 && *size == sizeof(size_t)) {
    *static_cast<size_t*>(value) = fake::memory_size;
    return 0;
  }
  return -1;
}

} // extern "C"
