#include "base/log/log_settings.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/text.hpp"

namespace taas {
namespace {

constexpr std::array<std::string_view, kLogParts> kParts = {"coordinator", "agent",   "process", "net",
                                                            "store",       "storage", "data",    "training"};
constexpr std::array<std::string_view, 6> kLevels = {"trace", "debug", "info", "warning", "error", "off"};
constexpr std::string_view kConsole = "console";

template <class Value, std::size_t kCount>
std::optional<Value> named(const std::array<std::string_view, kCount>& names, std::string_view name) {
  const auto* found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Value>(found - names.begin());
}

Result<LogLevel> read_level(std::string_view name) {
  if (auto level = named<LogLevel>(kLevels, name)) return *level;
  return usage_error(printable(name), fmt::format("not a level of the log: {}", fmt::join(kLevels, ", ")));
}

Result<> set_one(LogSettings& settings, std::string_view part, std::string_view name) {
  auto found = named<LogPart>(kParts, part);
  if (!found) {
    return usage_error(printable(part), fmt::format("not a part with a log: {}", fmt::join(kParts, ", ")));
  }
  auto level = read_level(name);
  if (!level) return level.error();
  settings.levels[static_cast<std::size_t>(*found)] = *level;
  return {};
}

Result<> set_all(LogSettings& settings, std::string_view name) {
  auto level = read_level(name);
  if (!level) return level.error();
  settings.levels.fill(*level);
  return {};
}

}  // namespace

Result<LogSettings> parse_log_settings(std::string_view text) {
  LogSettings settings;
  if (trim(text).empty()) return settings;
  auto words = split(text, ',');
  std::stable_partition(words.begin(), words.end(), [](const auto& word) { return !contains(word, "="); });
  for (const auto& word : words) {
    auto wish = trim(word);
    auto equals = wish.find('=');
    if (wish == kConsole) {
      settings.console = true;
      continue;
    }
    auto set = equals == std::string_view::npos
                   ? set_all(settings, wish)
                   : set_one(settings, trim(wish.substr(0, equals)), trim(wish.substr(equals + 1)));
    if (!set) return set.error();
  }
  return settings;
}

std::string_view name_of(LogPart part) { return kParts.at(static_cast<std::size_t>(part)); }
std::string_view name_of(LogLevel level) { return kLevels.at(static_cast<std::size_t>(level)); }

}  // namespace taas
