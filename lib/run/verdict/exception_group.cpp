#include "run/verdict/exception_group.hpp"

#include <cstdlib>
#include <string_view>

#include "base/text.hpp"
#include "run/verdict/traceback.hpp"

namespace taas::run {
namespace {

bool begins_group(std::string_view line) {
  return contains(line, "+ Exception Group Traceback (most recent call last)");
}

/// "  |   File …" and "  +-+---------------- 1 ----------------": where the margin ends. npos: there is none.
std::size_t margin_end(std::string_view line) {
  auto mark = line.find_first_not_of(' ');
  bool is_margin = mark != line.npos && mark > 0 && (line[mark] == '|' || line[mark] == '+');
  return is_margin ? mark + 1 : line.npos;
}

/// The number of the exception that such a line stands above; 0: it is another line.
int place_in_group(std::string_view line) {
  auto digits = line.find_first_of("123456789");
  bool is_rule = line.starts_with('-') && digits != line.npos && line.find_first_not_of("-+ ") == digits;
  return is_rule ? std::atoi(std::string(line.substr(digits)).c_str()) : 0;
}

class Flattening {
 public:
  std::string take(const std::string& line) {
    auto text = without_rank_prefix(line);
    auto prefix = line.substr(0, line.size() - text.size());
    if (begins_group(text)) {
      in_group_ = true;
      in_later_one_ = false;
    }
    auto end = in_group_ ? margin_end(text) : text.npos;
    if (end == text.npos) return leave(line);
    return prefix + std::string(inside(text.substr(end)));
  }

 private:
  const std::string& leave(const std::string& line) {
    in_group_ = in_later_one_ = false;
    return line;
  }

  std::string_view inside(std::string_view text) {
    in_later_one_ = in_later_one_ || place_in_group(text) > 1;
    bool is_rule = text.starts_with('-');
    if (is_rule || in_later_one_) return "";
    return text.starts_with(' ') ? text.substr(1) : text;
  }

  bool in_group_ = false;
  bool in_later_one_ = false;  // behind the first exception of a group
};

}  // namespace

std::vector<std::string> flatten_exception_groups(std::span<const std::string> lines) {
  Flattening flattening;
  std::vector<std::string> flat;
  flat.reserve(lines.size());
  for (const auto& line : lines) flat.push_back(flattening.take(line));
  return flat;
}

}  // namespace taas::run
