#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "base/log/log_file.hpp"

/// What the native module is made of: one function a file.
namespace taas::native {

void add_client(nanobind::module_& module);
void add_server(nanobind::module_& module);
void add_memory(nanobind::module_& module);

/// Begins the log of this process, where the launcher or the user wants one. Raises ValueError for a TAAS_LOG that says
/// something else.
inline void open_log(const std::string& name) {
  if (auto opened = log::open_as_told(name); !opened) throw nanobind::value_error(opened.error().message.c_str());
}

/// The number that the launcher gave to this process, or "0".
inline std::string place(const char* variable) {
  const char* value = std::getenv(variable);
  return log::name_for_file(value != nullptr && *value != 0 ? value : "0");
}

/// Repeats a wait in short slices without the GIL until it brings something or `timeout` (seconds; none: for ever) is
/// over. Between slices Python handles signals, so that Ctrl-C ends a wait.
template <class Wait>
auto wait_in_slices(std::optional<double> timeout, Wait wait) -> decltype(wait(Duration())) {
  constexpr Duration kSlice = std::chrono::milliseconds(200);
  const auto began = steady_now();
  for (;;) {
    const auto left = timeout ? Duration(static_cast<Duration::rep>(*timeout * 1e9)) - (steady_now() - began) : kSlice;
    decltype(wait(Duration())) result;
    {
      nanobind::gil_scoped_release released;
      result = wait(std::clamp(left, Duration(0), kSlice));
    }
    if (result || (timeout && left <= kSlice)) return result;
    if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
  }
}

}  // namespace taas::native
