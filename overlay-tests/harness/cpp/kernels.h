// The laid tree's kernels, by the host names its own quantized.metal gives.
//
// A translation unit says which it wants in `overlay_wanted`, includes this
// file, and calls the tree's own instantiate_* macros. See units.rs.
#pragma once

#include "prefix.h"

namespace overlay {

// Calls a kernel `void(buffers..., uint3 tid, uint simd_gid, uint simd_lid)`, or
// one whose last two name a quad.
template <bool quads, auto function, typename Signature = decltype(function)>
struct Caller;

template <typename T>
struct Argument {
  static T from(void* pointer) {
    return (T)pointer;
  }
};

template <typename T>
struct Argument<T&> {
  static T& from(void* pointer) {
    return *(T*)pointer;
  }
};

template <typename... Args>
struct Signature {
  template <size_t i>
  using At = std::tuple_element_t<i, std::tuple<Args...>>;
  static constexpr size_t buffers = sizeof...(Args) - 3;
  static_assert(std::is_same_v<At<buffers>, metal::uint3>);
  static_assert(std::is_same_v<At<buffers + 1>, uint>);
  static_assert(std::is_same_v<At<buffers + 2>, uint>);
};

template <bool quads, auto function, typename... Args>
struct Caller<quads, function, void (*)(Args...)> {
  using Sig = Signature<Args...>;

  static void call(void* const* buffers, const Position& at) {
    call(buffers, at, std::make_index_sequence<Sig::buffers>());
  }

  template <size_t... i>
  static void
  call(void* const* buffers, const Position& at, std::index_sequence<i...>) {
    const Lane lane = lane_at<quads>(at);
    function(
        Argument<typename Sig::template At<i>>::from(buffers[i])...,
        metal::uint3(at.group[0], at.group[1], at.group[2]),
        lane.group,
        lane.member);
  }
};

constexpr bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// A kernel nobody wants is never instantiated: `add` is generic, its body
// stands only where it is called.
template <bool wanted, typename Add>
bool add_if(const Add& add) {
  if constexpr (wanted) {
    add(0);
  }
  return wanted;
}

} // namespace overlay

#define OVERLAY_JOIN_(a, b) a##b
#define OVERLAY_JOIN(a, b) OVERLAY_JOIN_(a, b)

namespace {
#define instantiate_kernel(...)
#ifdef OVERLAY_SYMBOLIC
#include "symbolic_words.h"
#endif
#ifdef OVERLAY_WITHOUT_CONST
// qmv_quad hands a `const constant int&` on as a `constant int&`, which C++
// takes for a lost const.
#define const
#endif
#include "mlx/backend/metal/kernels/quantized.metal"
#undef const
#undef instantiate_kernel
} // namespace

#define instantiate_kernel(name, func, ...)                               \
  static const bool OVERLAY_JOIN(overlay_kernel_, __COUNTER__) =          \
      overlay::add_if<overlay_wanted(#func, name)>([](auto) {             \
        overlay::add_kernel(                                              \
            name,                                                         \
            overlay::Caller<overlay::of_quads(name), &func<__VA_ARGS__>>:: \
                call);                                                    \
      });
