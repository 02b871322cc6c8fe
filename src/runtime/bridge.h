// The C++ side of mlx-overlay's bridge. See bridge.rs for what crosses it.

#pragma once

#include <cstdint>
#include <exception>
#include <memory>

#include "mlx/array.h"
#include "rust/cxx.h"

namespace rust::behavior {

// cxx turns std::exception into a Result and lets anything else end the
// process. Nothing is to cross the border but a Result.
template <typename Try, typename Fail>
static void trycatch(Try&& func, Fail&& fail) noexcept try {
  func();
} catch (const std::exception& e) {
  fail(e.what());
} catch (...) {
  fail("an exception that is no std::exception");
}

} // namespace rust::behavior

namespace mlx_overlay {

using Array = mlx::core::array;

enum class ElementKind : uint8_t;
struct StreamKey;
struct Parts;
struct Scheme;
struct CellKey;
struct Property;

std::unique_ptr<Array> array_from_bytes(
    rust::Slice<const uint8_t> bytes,
    rust::Slice<const int32_t> shape,
    ElementKind element);
void array_bytes(const Array& array, rust::Slice<uint8_t> out);
rust::Vec<int32_t> array_shape(const Array& array);
ElementKind array_element(const Array& array);
rust::String array_element_name(const Array& array);
size_t array_bytes_len(const Array& array);
std::unique_ptr<Array> array_handle(const Array& array);
void eval(const Array& array);

StreamKey new_stream(bool gpu);
void synchronize(StreamKey stream);

Parts quantize(const Array& weight, const Scheme& scheme, StreamKey stream);
std::unique_ptr<Array>
dequantize(const Parts& parts, const Scheme& scheme, StreamKey stream);
std::unique_ptr<Array> quantized_matmul(
    const Array& x,
    const Parts& parts,
    const Scheme& scheme,
    bool transpose,
    StreamKey stream);

rust::String library_key();
rust::String mlx_version();
bool metal_is_available();
void set_metallib_path(rust::Str path);
int32_t device_count(bool gpu);
rust::Vec<Property> device_properties(bool gpu);
rust::String os_build();

bool has_overlay();
bool has_guard();
bool policy_has_effect();
bool set_process_policy(int32_t policy);
bool set_stream_policy(StreamKey stream, int32_t policy);
int32_t process_policy();
int32_t stream_policy(StreamKey stream);
int32_t effective_policy(StreamKey stream);
uint64_t dispatches(bool fp, int32_t family);
void reset_dispatches();
void set_guard(bool on);
bool guard_is_on();
void set_trial_stream(StreamKey stream);
void clear_trial_stream();
void certify_cell(CellKey cell, bool holds);
uint64_t refused_dispatches();
rust::Vec<CellKey> take_refused_cells();

} // namespace mlx_overlay
