#include "plan/launch_mode/nodelist.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>

#include "base/text.hpp"
#include "plan/options/numbers.hpp"

namespace taas::plan {
namespace {

constexpr std::size_t kMostEntries = 65536;
constexpr std::size_t kMostDigits = 18;

Error too_many(std::string_view text) { return usage_error(text, fmt::format("more than {} entries", kMostEntries)); }

std::optional<std::int64_t> parse_digits(std::string_view text) {
  if (text.empty() || text.size() > kMostDigits || text.find_first_not_of("0123456789") != text.npos) return {};
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

/// "07", or "1-3" as many times; as wide as the first one is written.
Result<> add_numbers(std::string_view range, std::vector<std::string>& numbers) {
  auto dash = range.find('-');
  auto first_text = range.substr(0, dash);
  auto first = parse_digits(first_text);
  auto last = dash == range.npos ? first : parse_digits(range.substr(dash + 1));
  if (!first || !last || *last < *first) return usage_error(range, "not a range of nodes, such as 01-12");
  if (static_cast<std::size_t>(*last - *first) >= kMostEntries - numbers.size()) return too_many(range);
  for (auto number = *first; number <= *last; ++number) {
    numbers.push_back(fmt::format("{:0{}}", number, first_text.size()));
  }
  return {};
}

/// Every name so far with every text behind it.
Result<> multiply(std::vector<std::string>& names, const std::vector<std::string>& texts, std::string_view element) {
  if (names.size() * texts.size() > kMostEntries) return too_many(element);
  std::vector<std::string> longer;
  longer.reserve(names.size() * texts.size());
  for (const auto& name : names) {
    for (const auto& text : texts) longer.push_back(name + text);
  }
  names = std::move(longer);
  return {};
}

/// One element of the list: texts and brackets in turn.
Result<std::vector<std::string>> expand_element(std::string_view element) {
  std::vector<std::string> names{""};
  for (auto rest = element; !rest.empty();) {
    auto open = rest.find('[');
    if (auto plain = rest.substr(0, open); !plain.empty()) {
      if (plain.find(']') != plain.npos) return usage_error(element, "a ] without its [");
      for (auto& name : names) name += plain;
    }
    if (open == rest.npos) break;
    auto close = rest.find(']', open);
    if (close == rest.npos) return usage_error(element, "a [ without its ]");
    std::vector<std::string> numbers;
    for (auto range : split(rest.substr(open + 1, close - open - 1), ',')) {
      if (auto added = add_numbers(range, numbers); !added) return added.error();
    }
    if (auto done = multiply(names, numbers, element); !done) return done.error();
    rest.remove_prefix(close + 1);
  }
  return names;
}

/// The commas within brackets belong to their element.
std::vector<std::string_view> split_elements(std::string_view text) {
  std::vector<std::string_view> elements;
  std::size_t begin = 0;
  bool in_bracket = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '[') in_bracket = true;
    if (text[i] == ']') in_bracket = false;
    if (text[i] != ',' || in_bracket) continue;
    elements.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  elements.push_back(text.substr(begin));
  return elements;
}

}  // namespace

Result<std::vector<std::string>> expand_nodelist(std::string_view text) {
  std::vector<std::string> names;
  for (auto element : split_elements(text)) {
    if (element.empty()) return usage_error(text, "an empty entry in the list of nodes");
    auto expanded = expand_element(element);
    if (!expanded) return expanded;
    if (names.size() + expanded->size() > kMostEntries) return too_many(text);
    names.insert(names.end(), expanded->begin(), expanded->end());
  }
  return names;
}

Result<std::vector<int>> expand_task_counts(std::string_view text) {
  std::vector<int> counts;
  for (auto element : split(text, ',')) {
    auto open = element.find("(x");
    auto tasks = parse_integer(element.substr(0, open));
    std::optional<int> times = 1;
    if (open != element.npos) {
      bool closed = element.back() == ')';
      times = closed ? parse_integer(element.substr(open + 2, element.size() - open - 3)) : std::nullopt;
    }
    if (!tasks || *tasks < 0 || !times || *times < 1) return usage_error(text, "not numbers of tasks, such as 2(x3),1");
    if (static_cast<std::size_t>(*times) > kMostEntries - counts.size()) return too_many(text);
    counts.insert(counts.end(), static_cast<std::size_t>(*times), *tasks);
  }
  return counts;
}

}  // namespace taas::plan
