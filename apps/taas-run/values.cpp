#include "values.hpp"

#include <fmt/format.h>
#include <string.h>

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <string>

#include "plan/numbers.hpp"

namespace taas::cli {
namespace {

constexpr double kLongestSeconds = 1e9;  // thirty years, and far from overflow

int signal_number(std::string_view name) {
  for (int signal = 1; signal < SIGRTMIN; ++signal) {
    const char* short_name = ::sigabbrev_np(signal);
    if (short_name != nullptr && name == fmt::format("SIG{}", short_name)) return signal;
  }
  return 0;
}

}  // namespace

Result<int> read_integer(std::string_view text, int least, int most) {
  auto number = plan::parse_integer(text);
  if (number && *number >= least && *number <= most) return *number;
  if (most == std::numeric_limits<int>::max()) return usage_error(fmt::format("not a whole number from {}", least));
  return usage_error(fmt::format("not a whole number from {} to {}", least, most));
}

Result<bool> read_switch(std::string_view text) {
  for (auto yes : {"true", "yes", "on"}) {
    if (text == yes) return true;
  }
  for (auto no : {"false", "no", "off"}) {
    if (text == no) return false;
  }
  if (auto number = plan::parse_integer(text)) return *number != 0;
  return usage_error("neither true nor false");
}

Result<std::chrono::milliseconds> read_seconds(std::string_view text) {
  std::string copy(text);
  char* end = nullptr;
  double seconds = std::strtod(copy.c_str(), &end);
  bool whole = !copy.empty() && end == copy.c_str() + copy.size();
  if (!whole || !(seconds >= 0 && seconds <= kLongestSeconds)) return usage_error("not a number of seconds");
  return std::chrono::milliseconds(std::llround(seconds * 1000));
}

Result<std::vector<int>> read_integers(std::string_view text) {
  std::vector<int> numbers;
  if (text.empty()) return numbers;
  for (auto part : plan::split(text, ',')) {
    auto number = plan::parse_integer(part);
    if (!number || *number < 0) return usage_error("not a list of whole numbers, such as 0,1,2");
    numbers.push_back(*number);
  }
  return numbers;
}

Result<std::vector<int>> read_signals(std::string_view text) {
  std::vector<int> signals;
  for (auto name : plan::split(text, ',')) {
    int signal = signal_number(name);
    if (signal == 0) return usage_error("not a list of signals, such as SIGTERM,SIGUSR1");
    if (signal == SIGKILL || signal == SIGSTOP) return usage_error(fmt::format("{} cannot be handled", name));
    signals.push_back(signal);
  }
  return signals;
}

Result<int> read_signal(std::string_view text) {
  int signal = signal_number(text.starts_with("SIG") ? std::string(text) : fmt::format("SIG{}", text));
  if (signal == 0) return usage_error("not a signal, such as USR2");
  if (signal == SIGKILL || signal == SIGSTOP) return usage_error(fmt::format("{} cannot be handled", text));
  return signal;
}

}  // namespace taas::cli
