// fft.cpp returns a make_tuple where a pair is wanted: libc++ converts it,
// libstdc++ does not. Two values make a pair here, which converts to a tuple.
#pragma once

#include <tuple>
#include <utility>

namespace std {

template <typename A, typename B>
auto make_tuple_or_pair(A&& a, B&& b) {
  return std::make_pair(std::forward<A>(a), std::forward<B>(b));
}

template <typename... T>
auto make_tuple_or_pair(T&&... values) {
  return std::make_tuple(std::forward<T>(values)...);
}

} // namespace std

#define make_tuple make_tuple_or_pair
