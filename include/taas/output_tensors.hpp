#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

namespace taas {

/// How to find the tensors in what a module's forward returns: at::Tensor, and optional, vector, array, map,
/// unordered_map (their values), pair and tuple of anything listed here, nested as deep as needed; numbers, enums and
/// strings hold none. A struct opts in with a member `template <class Visit> void visit_tensors(Visit&& visit)` that
/// calls `visit` on each of its own.
template <class T>
struct OutputTensors {
  static constexpr bool kKnown = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>;
  static void visit(auto&&, auto&&) {}
};

namespace detail {

template <class T>
concept VisitsTensors = requires(T& value, void (&visit)(at::Tensor&)) {
  value.visit_tensors(visit);
};

/// For containers whose elements are T.
template <class T>
struct ElementTensors {
  static constexpr bool kKnown = OutputTensors<T>::kKnown;
  static void visit(auto& values, auto&& visit) {
    for (auto&& value : values) OutputTensors<T>::visit(value, visit);
  }
};

/// For containers of (key, T).
template <class T>
struct MappedTensors {
  static constexpr bool kKnown = OutputTensors<T>::kKnown;
  static void visit(auto& values, auto&& visit) {
    for (auto& [key, value] : values) OutputTensors<T>::visit(value, visit);
  }
};

/// For pair and tuple.
template <class... T>
struct MemberTensors {
  static constexpr bool kKnown = (OutputTensors<T>::kKnown && ...);
  static void visit(auto& values, auto&& visit) {
    std::apply([&](auto&... value) { (OutputTensors<std::decay_t<decltype(value)>>::visit(value, visit), ...); },
               values);
  }
};

}  // namespace detail

template <>
struct OutputTensors<at::Tensor> {
  static constexpr bool kKnown = true;
  static void visit(at::Tensor& value, auto&& visit) { visit(value); }
};

template <class T>
struct OutputTensors<std::optional<T>> {
  static constexpr bool kKnown = OutputTensors<T>::kKnown;
  static void visit(std::optional<T>& value, auto&& visit) {
    if (value) OutputTensors<T>::visit(*value, visit);
  }
};

template <detail::VisitsTensors T>
struct OutputTensors<T> {
  static constexpr bool kKnown = true;
  static void visit(T& value, auto&& visit) { value.visit_tensors(visit); }
};

template <class T, class A>
struct OutputTensors<std::vector<T, A>> : detail::ElementTensors<T> {};
template <class T, std::size_t N>
struct OutputTensors<std::array<T, N>> : detail::ElementTensors<T> {};
template <class K, class T, class... Rest>
struct OutputTensors<std::map<K, T, Rest...>> : detail::MappedTensors<T> {};
template <class K, class T, class... Rest>
struct OutputTensors<std::unordered_map<K, T, Rest...>> : detail::MappedTensors<T> {};
template <class A, class B>
struct OutputTensors<std::pair<A, B>> : detail::MemberTensors<A, B> {};
template <class... T>
struct OutputTensors<std::tuple<T...>> : detail::MemberTensors<T...> {};

}  // namespace taas
