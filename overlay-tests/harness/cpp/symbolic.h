// Numbers that record the expression they come from.
//
// Every value is a node of one table in which equal expressions are one node:
// two kernels compute the same for all inputs if their outputs are the same
// nodes. Operand order is kept. Rounding is part of an expression, and so is
// contraction: clang fuses a product with a sum only while the product is a
// temporary of the same expression, so `a * b` is a Product, which fuses as a
// temporary and rounds as soon as it has a name.
//
// Loads are counted where the source has them: a value that is read at an
// address of device memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "simdgroup.h"

namespace overlay::symbolic {

using Node = uint32_t;
constexpr Node kNoNode = 0xaaaaaaaa; // what a local without a value holds

enum class Op : uint8_t {
  zero, // the number 0 of any kind; node 0
  input, // a value of device memory: role, index
  literal, // a double's bits: high, low
  add,
  sub,
  mul,
  div,
  fma, // a * b + c, one rounding
  fms, // a * b - c
  fnma, // c - a * b
  neg,
  widen, // half to float, exact
  narrow, // float to half, rounds
  from_int,
  word, // two halves of a wider integer: low, high
  bit_and,
  bit_or,
  shift_left,
  shift_right,
  int_add,
  int_mul,
  lane, // the lanes before, the next one
  simd_sum,
};

enum class Kind : uint8_t { none, half, single };

enum Role : uint32_t { kWeights, kScales, kBiases, kX, kY, kRoles };

// The table, defined in symbolic.cpp.
Node intern(Op op, Kind kind, Node a = 0, Node b = 0, Node c = 0);
Node literal(Kind kind, double value); // 0 is node 0, -0 is not
bool literal_value(Node node, double& value);

// Counts a load if the address is in device memory.
extern const char* device_begin;
extern const char* device_end;
void count_load(const void* address, size_t bytes);

inline void loaded(const void* address, size_t bytes) {
  auto at = static_cast<const char*>(address);
  if (at >= device_begin && at < device_end) {
    count_load(address, bytes);
  }
}

// Records a store if the address is in device memory.
void count_store(const void* address, Node value);

inline void stored(const void* address, Node value) {
  auto at = static_cast<const char*>(address);
  if (at >= device_begin && at < device_end) {
    count_store(address, value);
  }
}

template <Kind kind>
struct Product {
  Node a, b;
};

struct Int;
struct U8;
struct U16;
struct U32;
template <Kind kind>
struct Number;

template <typename T>
struct Traits {
  static constexpr bool number = false;
  static constexpr bool product = false;
  static constexpr bool integer = false;
  static constexpr Kind kind =
      std::is_floating_point_v<T> ? Kind::single : Kind::none;
};
template <Kind k>
struct Traits<Number<k>> {
  static constexpr bool number = true;
  static constexpr bool product = false;
  static constexpr bool integer = false;
  static constexpr Kind kind = k;
};
template <Kind k>
struct Traits<Product<k>> {
  static constexpr bool number = true;
  static constexpr bool product = true;
  static constexpr bool integer = false;
  static constexpr Kind kind = k;
};
template <typename T>
concept SymbolicInteger = std::is_same_v<T, Int> || std::is_same_v<T, U8> ||
    std::is_same_v<T, U16> || std::is_same_v<T, U32>;

template <typename T>
using Bare = std::remove_cvref_t<T>;
template <typename T>
using Of = Traits<Bare<T>>;

template <typename A, typename B>
concept NumberOperands = (Of<A>::number || Of<B>::number) &&
    (Of<A>::number || SymbolicInteger<Bare<A>> ||
     std::is_arithmetic_v<Bare<A>>)&&(Of<B>::number ||
                                      SymbolicInteger<Bare<B>> ||
                                      std::is_arithmetic_v<Bare<B>>);

template <typename A, typename B>
concept IntegerOperands =
    (SymbolicInteger<Bare<A>> || SymbolicInteger<Bare<B>>)&&(
        SymbolicInteger<Bare<A>> ||
        std::is_integral_v<Bare<A>>)&&(SymbolicInteger<Bare<B>> ||
                                       std::is_integral_v<Bare<B>>);

template <typename A, typename B>
constexpr Kind kCommon =
    Of<A>::kind > Of<B>::kind ? Of<A>::kind : Of<B>::kind;

// A product that may still fuse: a temporary of the kind computed in.
template <Kind kind, typename T>
constexpr bool kFuses = !std::is_lvalue_reference_v<T> &&
    std::is_same_v<Bare<T>, Product<kind>>;

Node integer(const Int& value);
Node integer(const U8& value);
Node integer(const U16& value);
Node integer(const U32& value);

template <typename T>
requires std::is_integral_v<T>
inline Node integer(const T& value) {
  return literal(Kind::none, double(value));
}

inline Node from_integer(Kind kind, Node node) {
  double value;
  if (literal_value(node, value)) {
    return literal(kind, value);
  }
  return intern(Op::from_int, kind, node);
}

// The node of an operand in the kind an operation computes in.
template <Kind kind, typename T>
inline Node lift(const T& value) {
  if constexpr (Of<T>::product) {
    const Node product =
        intern(Op::mul, Of<T>::kind, value.a, value.b);
    return Of<T>::kind == kind ? product : intern(Op::widen, kind, product);
  } else if constexpr (Of<T>::number) {
    loaded(&value, Of<T>::kind == Kind::half ? 2 : 4);
    return Of<T>::kind == kind ? value.node
                               : intern(Op::widen, kind, value.node);
  } else if constexpr (SymbolicInteger<T>) {
    return from_integer(kind, integer(value));
  } else {
    return literal(kind, double(value));
  }
}

template <Kind kind>
struct Number {
  Node node;

  Number() = default;
  Number(const Number& other) : node(lift<kind>(other)) {}
  Number& operator=(const Number& other) {
    node = lift<kind>(other);
    stored(this, node);
    return *this;
  }

  template <typename T>
  requires(SymbolicInteger<T> || std::is_same_v<T, Product<kind>>)
  Number(const T& value) : node(lift<kind>(value)) {}

  // The table is not there at compile time: such a constant must not be used.
  template <typename T>
  requires std::is_arithmetic_v<T>
  constexpr Number(const T& value)
      : node(std::is_constant_evaluated() ? kNoNode : lift<kind>(value)) {}

  // Half to float is implicit, float to half is asked for.
  template <typename T>
  requires(kind == Kind::single && Of<T>::number && Of<T>::kind == Kind::half)
  Number(const T& value) : node(lift<kind>(value)) {}
  template <typename T>
  requires(kind == Kind::half && Of<T>::number && Of<T>::kind == Kind::single)
  explicit Number(const T& value)
      : node(intern(Op::narrow, kind, lift<Kind::single>(value))) {}

  static Number of(Node node) {
    Number number;
    number.node = node;
    return number;
  }

  template <typename B>
  Number& operator+=(B&& value);
  template <typename B>
  Number& operator-=(B&& value);
  template <typename B>
  Number& operator*=(B&& value);
};

template <typename A, typename B>
requires NumberOperands<A, B>
inline auto operator*(A&& a, B&& b) {
  constexpr Kind kind = kCommon<A, B>;
  const Node left = lift<kind>(a);
  return Product<kind>{left, lift<kind>(b)};
}

template <typename A, typename B>
requires NumberOperands<A, B>
inline auto operator/(A&& a, B&& b) {
  constexpr Kind kind = kCommon<A, B>;
  const Node left = lift<kind>(a);
  return Number<kind>::of(intern(Op::div, kind, left, lift<kind>(b)));
}

template <typename A, typename B>
requires NumberOperands<A, B>
inline auto operator+(A&& a, B&& b) {
  constexpr Kind kind = kCommon<A, B>;
  if constexpr (kFuses<kind, A>) {
    return Number<kind>::of(intern(Op::fma, kind, a.a, a.b, lift<kind>(b)));
  } else if constexpr (kFuses<kind, B>) {
    return Number<kind>::of(intern(Op::fma, kind, b.a, b.b, lift<kind>(a)));
  } else {
    const Node left = lift<kind>(a);
    return Number<kind>::of(intern(Op::add, kind, left, lift<kind>(b)));
  }
}

template <typename A, typename B>
requires NumberOperands<A, B>
inline auto operator-(A&& a, B&& b) {
  constexpr Kind kind = kCommon<A, B>;
  if constexpr (kFuses<kind, A>) {
    return Number<kind>::of(intern(Op::fms, kind, a.a, a.b, lift<kind>(b)));
  } else if constexpr (kFuses<kind, B>) {
    return Number<kind>::of(intern(Op::fnma, kind, b.a, b.b, lift<kind>(a)));
  } else {
    const Node left = lift<kind>(a);
    return Number<kind>::of(intern(Op::sub, kind, left, lift<kind>(b)));
  }
}

template <typename A>
requires(Of<A>::number)
inline auto operator-(A&& a) {
  constexpr Kind kind = Of<A>::kind;
  return Number<kind>::of(intern(Op::neg, kind, lift<kind>(a)));
}

template <Kind kind>
template <typename B>
Number<kind>& Number<kind>::operator+=(B&& value) {
  return *this = Number(*this + std::forward<B>(value));
}

template <Kind kind>
template <typename B>
Number<kind>& Number<kind>::operator-=(B&& value) {
  return *this = Number(*this - std::forward<B>(value));
}

template <Kind kind>
template <typename B>
Number<kind>& Number<kind>::operator*=(B&& value) {
  return *this = Number(*this * std::forward<B>(value));
}

// Which way a comparison of unknown values goes is unknown: no kernel under
// test may ask. (Other kernels of the header do, and must compile.)
template <typename A, typename B>
requires NumberOperands<A, B>
inline bool operator<(A&&, B&&) {
  fail("the kernel compares symbolic numbers");
}
template <typename A, typename B>
requires NumberOperands<A, B>
inline bool operator>(A&&, B&&) {
  fail("the kernel compares symbolic numbers");
}
template <typename A, typename B>
requires NumberOperands<A, B>
inline bool operator==(A&&, B&&) {
  fail("the kernel compares symbolic numbers");
}
template <Kind kind>
inline Number<kind> abs(const Number<kind>&) {
  fail("the kernel takes the absolute value of a symbolic number");
}
template <Kind kind>
inline Number<kind> round(const Number<kind>&) {
  fail("the kernel rounds a symbolic number to an integer");
}

// Integers of packed weights. A byte is a node; wider ones are their bytes, so
// that memory can be read at any width.
struct U8 {
  Node node;

  U8() = default;
  U8(const U8& other) : node(other.node) {
    loaded(&other, 1);
  }
  U8& operator=(const U8& other) {
    loaded(&other, 1);
    node = other.node;
    return *this;
  }
  template <typename T>
  requires std::is_integral_v<T>
  U8(T value) : node(literal(Kind::none, double(uint8_t(value)))) {}
  template <Kind kind>
  U8(const Number<kind>&) {
    fail("the kernel turns a symbolic number into an integer");
  }
  operator uint32_t() const; // of a constant, else the kernel fails
};

template <int count>
struct Bytes {
  U8 bytes[count];
};

struct U16 : Bytes<2> {
  U16() = default;
  U16(const U16& other) {
    *this = other;
  }
  U16& operator=(const U16& other) {
    loaded(&other, 2);
    for (int i = 0; i < 2; i++) {
      bytes[i].node = other.bytes[i].node;
    }
    return *this;
  }
  template <typename T>
  requires std::is_integral_v<T>
  U16(T value) {
    for (int i = 0; i < 2; i++) {
      bytes[i] = U8(uint16_t(value) >> (8 * i));
    }
  }
};

struct U32 : Bytes<4> {
  U32() = default;
  U32(const U32& other) {
    *this = other;
  }
  U32& operator=(const U32& other) {
    loaded(&other, 4);
    for (int i = 0; i < 4; i++) {
      bytes[i].node = other.bytes[i].node;
    }
    return *this;
  }
  template <typename T>
  requires std::is_integral_v<T>
  U32(T value) {
    for (int i = 0; i < 4; i++) {
      bytes[i] = U8(uint32_t(value) >> (8 * i));
    }
  }
  template <Kind kind>
  U32(const Number<kind>&) {
    fail("the kernel turns a symbolic number into an integer");
  }
  U32(const Int&) {
    fail("the kernel packs symbolic integers");
  }
  operator uint32_t() const; // of a constant, else the kernel fails
};

struct Int {
  Node node;

  operator int64_t() const; // of a constant, else the kernel fails
};

inline Node integer(const Int& value) {
  return value.node;
}

inline Node integer(const U8& value) {
  loaded(&value, 1);
  return value.node;
}

inline Node joined(Node low, Node high, double base) {
  double a, b;
  if (literal_value(low, a) && literal_value(high, b)) {
    return literal(Kind::none, a + b * base);
  }
  return intern(Op::word, Kind::none, low, high);
}

inline Node integer(const U16& value) {
  loaded(&value, 2);
  return joined(value.bytes[0].node, value.bytes[1].node, 256.0);
}

inline Node integer(const U32& value) {
  loaded(&value, 4);
  auto& bytes = value.bytes;
  return joined(
      joined(bytes[0].node, bytes[1].node, 256.0),
      joined(bytes[2].node, bytes[3].node, 256.0),
      65536.0);
}

inline Int::operator int64_t() const {
  double value;
  if (!literal_value(node, value)) {
    fail("the kernel computes an address from packed weights");
  }
  return int64_t(value);
}

inline U32::operator uint32_t() const {
  return uint32_t(int64_t(Int{integer(*this)}));
}

inline U8::operator uint32_t() const {
  return uint32_t(int64_t(Int{integer(*this)}));
}

// Bytes a value has on the GPU. A node is wider; the text must not know.
template <typename T>
constexpr size_t kSizeOf = sizeof(T);
template <>
inline constexpr size_t kSizeOf<U8> = 1;
template <>
inline constexpr size_t kSizeOf<U16> = 2;
template <>
inline constexpr size_t kSizeOf<U32> = 4;
template <>
inline constexpr size_t kSizeOf<Number<Kind::half>> = 2;
template <>
inline constexpr size_t kSizeOf<Number<Kind::single>> = 4;

template <typename A, typename B, typename Fold>
inline Int combine(Op op, const A& a, const B& b, const Fold& fold) {
  const Node left = integer(a), right = integer(b);
  double x, y;
  if (literal_value(left, x) && literal_value(right, y)) {
    return Int{literal(Kind::none, double(fold(int64_t(x), int64_t(y))))};
  }
  return Int{intern(op, Kind::none, left, right)};
}

#define OVERLAY_INTEGER_OPERATOR(symbol, op)                         \
  template <typename A, typename B>                                  \
  requires IntegerOperands<A, B>                                     \
  inline Int operator symbol(const A& a, const B& b) {               \
    return combine(op, a, b, [](int64_t x, int64_t y) -> int64_t {   \
      return x symbol y;                                             \
    });                                                              \
  }
OVERLAY_INTEGER_OPERATOR(&, Op::bit_and)
OVERLAY_INTEGER_OPERATOR(|, Op::bit_or)
OVERLAY_INTEGER_OPERATOR(<<, Op::shift_left)
OVERLAY_INTEGER_OPERATOR(>>, Op::shift_right)
OVERLAY_INTEGER_OPERATOR(+, Op::int_add)
OVERLAY_INTEGER_OPERATOR(*, Op::int_mul)
#undef OVERLAY_INTEGER_OPERATOR

} // namespace overlay::symbolic

using sym_float = overlay::symbolic::Number<overlay::symbolic::Kind::single>;
using sym_half = overlay::symbolic::Number<overlay::symbolic::Kind::half>;
using half = sym_half;
struct bfloat {};

namespace overlay {

// simd_sum is opaque: one node over the 32 lanes in their order.
inline void sum_lanes(sym_float* lanes, int count) {
  using namespace symbolic;
  Node chain = 0;
  for (int i = 0; i < count; i++) {
    chain = intern(Op::lane, Kind::single, chain, lanes[i].node);
  }
  const Node sum =
      intern(Op::simd_sum, Kind::single, chain, Node(count));
  for (int i = 0; i < count; i++) {
    lanes[i].node = sum;
  }
}

} // namespace overlay
