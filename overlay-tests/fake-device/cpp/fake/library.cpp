#include "fake/library.h"

#include <cstring>
#include <fstream>
#include <mutex>
#include <string_view>
#include <unordered_map>

namespace fake {

namespace {

class Function : public Object {
 public:
  explicit Function(Kernel kernel)
      : Object("MTLFunction"), kernel(std::move(kernel)) {}
  Kernel kernel;
};

class FunctionConstantValues : public Object {
 public:
  FunctionConstantValues() : Object("MTLFunctionConstantValues") {}

  void set(const void* value, MTL::DataType type, unsigned long index) {
    size_t size = type == MTL::DataTypeBool ? 1 : 4;
    Constant constant{index, type, std::vector<uint8_t>(size)};
    memcpy(constant.value.data(), value, size);
    values.push_back(std::move(constant));
  }

  std::vector<Constant> values;
};

class FunctionDescriptor : public Object {
 public:
  FunctionDescriptor() : Object("MTLFunctionDescriptor") {}

  static FunctionDescriptor* make() {
    auto* descriptor = new FunctionDescriptor;
    descriptor->autorelease();
    return descriptor;
  }
  void set_name(const NS::String* text) {
    name = text_of(text);
  }
  void set_specialized_name(const NS::String*) {}
  void set_constants(const FunctionConstantValues* values) {
    constants = values->values;
  }

  std::string name;
  std::vector<Constant> constants;
};

class CompileOptions : public Object {
 public:
  CompileOptions() : Object("MTLCompileOptions") {}
  void set_math_mode(MTL::MathMode) {}
  void set_language_version(MTL::LanguageVersion version) {
    version_ = version;
  }
  MTL::LanguageVersion language_version() const {
    return version_;
  }
  void set_logging(bool) {}

 private:
  MTL::LanguageVersion version_{MTL::LanguageVersion4_0};
};

template <typename T>
Object* make() {
  return new T;
}

const Methods library_methods(
    "MTLLibrary",
    {{"newFunctionWithName:", method<&Library::new_function>()},
     {"newFunctionWithDescriptor:error:",
      method<&Library::new_function_described>()}});

const Methods constant_methods(
    "MTLFunctionConstantValues",
    {{"setConstantValue:type:atIndex:",
      method<&FunctionConstantValues::set>()}},
    make<FunctionConstantValues>);

const ClassMethods descriptor_class(
    "MTLFunctionDescriptor",
    {{"functionDescriptor", method<&FunctionDescriptor::make>()}});
const Methods descriptor_methods(
    "MTLFunctionDescriptor",
    {{"setName:", method<&FunctionDescriptor::set_name>()},
     {"setSpecializedName:",
      method<&FunctionDescriptor::set_specialized_name>()},
     {"setConstantValues:", method<&FunctionDescriptor::set_constants>()}});

const Methods options_methods(
    "MTLCompileOptions",
    {{"setMathMode:", method<&CompileOptions::set_math_mode>()},
     {"setLanguageVersion:", method<&CompileOptions::set_language_version>()},
     {"languageVersion", method<&CompileOptions::language_version>()},
     {"setEnableLogging:", method<&CompileOptions::set_logging>()}},
    make<CompileOptions>);

const Methods pipeline_methods(
    "MTLComputePipelineState",
    {{"maxTotalThreadsPerThreadgroup", method<&PipelineState::max_threads>()},
     {"threadExecutionWidth", method<&PipelineState::execution_width>()}});

// Every quantized kernel's program starts with the same 300 kB.
struct Sources {
  std::mutex mutex;
  std::unordered_map<size_t, size_t> number_of;
  std::vector<std::string> texts;

  size_t add(std::string_view text) {
    std::lock_guard lock(mutex);
    auto hash = std::hash<std::string_view>{}(text);
    auto [it, added] = number_of.try_emplace(hash, texts.size());
    if (added) {
      texts.emplace_back(text);
    }
    return it->second;
  }
};

Sources& sources() {
  static auto* sources = new Sources;
  return *sources;
}

} // namespace

Library* Library::from_file(const std::string& path, NS::Error** error) {
  std::ifstream file(path);
  if (!file) {
    fail(error, "no library file at " + path);
    return nullptr;
  }
  auto* library = new Library;
  for (std::string name; std::getline(file, name);) {
    if (!name.empty()) {
      library->kernels_[name] = Kernel{name};
    }
  }
  return library;
}

Library* Library::from_source(const std::string& text) {
  constexpr std::string_view begin = "template [[host_name(\"";
  auto* library = new Library;
  std::string_view rest = text;
  auto at = rest.find(begin);
  auto source = sources().add(rest.substr(0, at));
  while (at != rest.npos) {
    rest.remove_prefix(at);
    auto name_end = rest.find('"', begin.size());
    auto end = rest.find(';');
    if (name_end == rest.npos || end == rest.npos) {
      break;
    }
    std::string name(rest.substr(begin.size(), name_end - begin.size()));
    library->kernels_[name] =
        Kernel{name, std::string(rest.substr(0, end + 1)), source};
    rest.remove_prefix(end);
    at = rest.find(begin);
  }
  return library;
}

Object* Library::new_function(const NS::String* name) {
  auto it = kernels_.find(text_of(name));
  return it == kernels_.end() ? nullptr : new Function(it->second);
}

Object* Library::new_function_described(Object* object, NS::Error** error) {
  auto* descriptor = static_cast<FunctionDescriptor*>(object);
  auto it = kernels_.find(descriptor->name);
  if (it == kernels_.end()) {
    fail(error, "no kernel is named " + descriptor->name);
    return nullptr;
  }
  auto* function = new Function(it->second);
  function->kernel.constants = descriptor->constants;
  return function;
}

Object* PipelineState::make(Object* function, NS::Error**) {
  return new PipelineState(static_cast<Function*>(function)->kernel);
}

std::vector<std::string> jit_sources() {
  std::lock_guard lock(sources().mutex);
  return sources().texts;
}

} // namespace fake
