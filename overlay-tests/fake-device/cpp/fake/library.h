// Metal libraries: which kernels exist, and what a JIT build asked to compile.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <Metal/Metal.hpp>

#include "fake/foundation.h"

namespace fake {

// A function constant, as set before a kernel is specialized.
struct Constant {
  unsigned long index;
  MTL::DataType type;
  std::vector<uint8_t> value;
};

// A kernel of a library.
struct Kernel {
  std::string name; // host name
  std::string definition; // JIT: the instantiation, as MLX wrote it
  size_t source{0}; // JIT: number of the text the definition was added to
  std::vector<Constant> constants;
};

class Library : public Object {
 public:
  // A library file of the fake device holds one host name a line.
  static Library* from_file(const std::string& path, NS::Error** error);
  // The instantiations at the end of a program MLX put together.
  static Library* from_source(const std::string& text);

  Object* new_function(const NS::String* name);
  Object* new_function_described(Object* descriptor, NS::Error** error);

 private:
  Library() : Object("MTLLibrary") {}

  std::map<std::string, Kernel> kernels_;
};

class PipelineState : public Object {
 public:
  static Object* make(Object* function, NS::Error** error);

  const Kernel& kernel() const {
    return kernel_;
  }
  unsigned long max_threads() const {
    return 1024;
  }
  unsigned long execution_width() const {
    return 32;
  }

 private:
  explicit PipelineState(Kernel kernel)
      : Object("MTLComputePipelineState"), kernel_(std::move(kernel)) {}

  Kernel kernel_;
};

// The texts that instantiations were added to, each kept once, by number.
std::vector<std::string> jit_sources();

} // namespace fake
