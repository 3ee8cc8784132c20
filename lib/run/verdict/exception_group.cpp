#include "run/verdict/exception_group.hpp"

#include <cstdlib>
#include <string_view>
#include <utility>

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

bool is_group(std::string_view raised) {
  return raised.ends_with(" sub-exceptions)") || raised.ends_with(" sub-exception)");
}

class Flattening {
 public:
  void take(const std::string& line) {
    auto text = without_rank_prefix(line);
    auto prefix = line.substr(0, line.size() - text.size());
    if (begins_group(text) && !in_member_) {
      flat_.groups.push_back({flat_.lines.size(), flat_.lines.size()});
      in_group_ = true;
      in_later_one_ = false;
    }
    auto end = in_group_ ? margin_end(text) : text.npos;
    if (end == text.npos) return leave(line);
    flat_.lines.push_back(prefix + std::string(inside(text.substr(end))));
    flat_.groups.back().end = flat_.lines.size();
  }

  WithoutGroups flat() { return std::move(flat_); }

 private:
  void leave(const std::string& line) {
    in_group_ = in_member_ = in_later_one_ = false;
    flat_.lines.push_back(line);
  }

  std::string_view inside(std::string_view text) {
    const int place = place_in_group(text);
    in_later_one_ = in_later_one_ || place > 1;
    const bool is_rule = text.starts_with('-');
    const auto own = text.starts_with(' ') ? text.substr(1) : text;
    if (place > 0) begin_member();
    if (in_member_ && !is_rule) read_member(own);
    return is_rule || in_later_one_ ? std::string_view() : own;
  }

  void begin_member() {
    in_member_ = true;
    says_nothing_yet_ = expects_words_ = true;
  }

  /// The first line that is no frame; of exceptions that were raised while others were handled, that of the last.
  void read_member(std::string_view line) {
    if (contains(line, "Traceback (most recent call last)")) {
      expects_words_ = true;
      return;
    }
    if (!expects_words_ || line.empty() || line.starts_with(' ')) return;
    expects_words_ = false;
    if (is_group(line)) return;
    auto& members = flat_.groups.back().members;
    if (!std::exchange(says_nothing_yet_, false)) members.pop_back();
    members.emplace_back(line);
  }

  WithoutGroups flat_;
  bool in_group_ = false;
  bool in_member_ = false;         // behind the group's own traceback
  bool in_later_one_ = false;      // behind the first exception of a group
  bool expects_words_ = false;     // of a member
  bool says_nothing_yet_ = false;  // that member
};

}  // namespace

WithoutGroups flatten_exception_groups(std::span<const std::string> lines) {
  Flattening flattening;
  for (const auto& line : lines) flattening.take(line);
  return flattening.flat();
}

}  // namespace taas::run
