#include "flags/values.hpp"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <limits>
#include <string>

#include "base/text.hpp"
#include "plan/launch_mode/host_list.hpp"
#include "plan/options/numbers.hpp"

namespace taas::cli {
namespace {

constexpr double kMostBytes = 1e18;
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
  bool all_digits = text.find_first_not_of("0123456789") == text.npos;
  if (!number && !text.empty() && all_digits) return usage_error(fmt::format("too large: the most is {}", most));
  if (most == std::numeric_limits<int>::max()) return usage_error(fmt::format("not a whole number from {}", least));
  return usage_error(fmt::format("not a whole number from {} to {}", least, most));
}

Result<bool> read_switch(std::string_view given) {
  std::string text(given);
  std::ranges::transform(text, text.begin(), [](unsigned char letter) { return std::tolower(letter); });
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
  for (auto part : split(text, ',')) {
    auto number = plan::parse_integer(part);
    if (!number || *number < 0) return usage_error("not a list of whole numbers, such as 0,1,2");
    numbers.push_back(*number);
  }
  return numbers;
}

Result<SignalList> read_signals(std::string_view text) {
  SignalList signals;
  for (auto part : split(text, ',')) {
    auto name = trim(part);
    if (name.empty()) return usage_error("not a list of signals, such as SIGTERM,SIGUSR1");
    int signal = signal_number(name);
    if (signal == SIGKILL || signal == SIGSTOP) return usage_error(fmt::format("{} cannot be handled", name));
    if (signal == 0) {
      signals.unknown.emplace_back(name);
    } else {
      signals.known.push_back(signal);
    }
  }
  return signals;
}

Result<std::int64_t> read_count(std::string_view text) {
  std::int64_t count = 0;
  auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (failed == std::errc() && end == text.data() + text.size() && count > 0) return count;
  return usage_error("not a whole number from 1");
}

Result<std::int64_t> read_bytes(std::string_view text) {
  constexpr std::string_view kSuffixes = " kmgt";
  std::string copy(text);
  char* end = nullptr;
  double number = std::strtod(copy.c_str(), &end);
  std::string_view suffix(end);
  auto letter = suffix.empty() ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(suffix.front())));
  auto power = kSuffixes.find(letter);
  bool known = suffix.size() <= 1 && power != kSuffixes.npos && end != copy.c_str();
  double bytes = number * std::pow(1024.0, static_cast<double>(power));
  if (!known || !(bytes >= 1 && bytes <= kMostBytes)) return usage_error("not a size, such as 512M or 8G");
  return static_cast<std::int64_t>(bytes);
}

Result<int> read_signal(std::string_view text) {
  int signal = signal_number(text.starts_with("SIG") ? std::string(text) : fmt::format("SIG{}", text));
  if (signal == 0) return usage_error("not a signal, such as USR2");
  if (signal == SIGKILL || signal == SIGSTOP) return usage_error(fmt::format("{} cannot be handled", text));
  return signal;
}

Result<> check_hosts(std::string_view text) {
  auto hosts = plan::parse_hosts(text);
  if (!hosts) return hosts.error();
  return {};
}

}  // namespace taas::cli
