#include "plan/program/python_variables.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>

#include "base/text.hpp"

namespace taas::plan {
namespace {

constexpr std::string_view kSpace = " \t\r\n";
/// What takes a name as its first argument and gives the variable a value, or takes it away.
constexpr std::string_view kCalls[] = {".setdefault(", ".pop(", ".__setitem__(", ".__delitem__("};
/// What stands in front of a name that is only read.
constexpr std::string_view kReadings[] = {"get(", "getenv(", "environ["};

bool is_letter_of_name(char letter) { return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_'; }

std::string_view text_from(std::string_view text, std::size_t place) {
  return text.substr(std::min(place, text.size()));
}

std::string_view without_space(std::string_view text) { return text_from(text, text.find_first_not_of(kSpace)); }

/// The name that the text begins with; empty where there is none.
std::string_view name_at(std::string_view text) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) != 0) return {};
  auto end = std::find_if_not(text.begin(), text.end(), is_letter_of_name);
  return text.substr(0, static_cast<std::size_t>(end - text.begin()));
}

struct QuotedName {
  std::string_view name;
  std::string_view behind;  // what follows, without the space
};

/// "NAME" or 'NAME' that the text begins with, b"NAME" too; nothing where more than a name is in quotes.
std::optional<QuotedName> quoted_at(std::string_view text) {
  if (text.starts_with('b')) text.remove_prefix(1);
  if (text.empty() || (text.front() != '"' && text.front() != '\'')) return std::nullopt;
  auto name = name_at(text.substr(1));
  auto rest = text.substr(1 + name.size());
  if (name.empty() || !rest.starts_with(text.front())) return std::nullopt;
  return QuotedName{name, without_space(rest.substr(1))};
}

/// "= value" or "+= value", but no comparison.
bool is_assignment(std::string_view text) {
  return text.starts_with("+=") || (text.starts_with('=') && !text.starts_with("=="));
}

/// Whether `del` is before the expression, like os.environ, with which the text ends.
bool ends_with_deletion(std::string_view text) {
  while (!text.empty() && (is_letter_of_name(text.back()) || text.back() == '.')) text.remove_suffix(1);
  text = trim(text);
  return text == "del" || (text.ends_with("del") && !is_letter_of_name(text[text.size() - 4]));
}

/// Up to the bracket that closes the one before the text.
std::string_view bracketed(std::string_view text) {
  int depth = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (contains("([{", text.substr(i, 1))) ++depth;
    if (contains(")]}", text.substr(i, 1)) && --depth == 0) return text.substr(0, i);
  }
  return text;
}

std::string without_comments(const std::string& text) {
  std::string kept;
  for (auto line : split(text, '\n')) {
    if (!trim(line).starts_with('#')) kept.append(line).push_back('\n');
  }
  return kept;
}

/// Goes through one text.
class VariableFinder {
 public:
  explicit VariableFinder(std::string_view text) : text_(text) {}

  VariablesSet find() && {
    for (auto end : ends_of("environ")) look_behind_environ(end);
    for (auto end : ends_of("putenv(")) note_first(text_from(text_, end));
    for (auto end : ends_of("unsetenv(")) note_first(text_from(text_, end));
    const auto plain = found_.size();
    if (computed_) note_likely();
    const bool from_file = text_.find("load_dotenv(") != text_.npos;
    const bool others = from_file || (computed_ && found_.size() == plain);
    return {std::move(found_), others};
  }

 private:
  std::vector<std::size_t> ends_of(std::string_view word) const {
    std::vector<std::size_t> ends;
    for (auto i = text_.find(word); i != text_.npos; i = text_.find(word, i + 1)) ends.push_back(i + word.size());
    return ends;
  }

  void look_behind_environ(std::size_t end) {
    auto rest = text_from(text_, end);
    if (rest.starts_with('b')) rest.remove_prefix(1);
    rest = without_space(rest);
    auto arguments = bracketed(text_from(rest, rest.find_first_of("([") + 1));
    auto is_call = [rest](std::string_view call) { return rest.starts_with(call); };
    if (rest.starts_with('[')) return look_at_key(end, arguments);
    if (std::any_of(std::begin(kCalls), std::end(kCalls), is_call)) return note_first(arguments);
    if (rest.starts_with(".update(")) return note_many(arguments);
    if (rest.starts_with("|=")) return note_many(rest.substr(2, rest.find_first_of("}\n", 4) - 2));
  }

  void look_at_key(std::size_t end_of_environ, std::string_view key) {
    auto behind = static_cast<std::size_t>(key.data() + key.size() - text_.data()) + 1;
    bool is_set = is_assignment(without_space(text_from(text_, behind)));
    if (is_set || ends_with_deletion(text_.substr(0, end_of_environ))) note_first(key);
  }

  /// What is more than a name in quotes is computed.
  void note_first(std::string_view arguments) {
    auto first = quoted_at(without_space(arguments));
    bool alone = first && (first->behind.empty() || first->behind.starts_with(',') || first->behind.starts_with(')'));
    alone ? note(first->name) : note_computed();
  }

  /// {"NAME": …} and NAME=….
  void note_many(std::string_view arguments) {
    bool any = false;
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      if (i > 0 && is_letter_of_name(arguments[i - 1])) continue;
      auto rest = arguments.substr(i);
      auto key = quoted_at(rest);
      auto word = key ? key->name : name_at(rest);
      bool is_set = key ? key->behind.starts_with(':') : is_assignment(without_space(rest.substr(word.size())));
      if (word.empty() || !is_set) continue;
      note(word);
      any = true;
    }
    if (!any || contains(arguments, "**")) note_computed();
  }

  /// All names in quotes that may be of variables, but those that are only asked for.
  void note_likely() {
    for (std::size_t i = 0; i < text_.size(); ++i) {
      auto quoted = quoted_at(text_.substr(i));
      if (!quoted || quoted->name.size() < 2 || quoted->name.find_first_of("abcdefghijklmnopqrstuvwxyz") != text_.npos)
        continue;
      auto is_before = [before = text_.substr(0, i)](std::string_view reading) { return before.ends_with(reading); };
      if (std::none_of(std::begin(kReadings), std::end(kReadings), is_before)) note(quoted->name);
    }
  }

  void note_computed() { computed_ = true; }
  void note(std::string_view name) {
    if (std::find(found_.begin(), found_.end(), name) == found_.end()) found_.emplace_back(name);
  }

  std::string_view text_;
  std::vector<std::string> found_;
  bool computed_ = false;  // a name that is not in the text as such
};

}  // namespace

VariablesSet variables_set(const std::string& text) {
  constexpr std::string_view kSigns[] = {"environ", "setenv(", "putenv(", "load_dotenv("};
  if (std::none_of(std::begin(kSigns), std::end(kSigns), [&](auto sign) { return contains(text, sign); })) return {};
  auto kept = without_comments(text);
  return VariableFinder(kept).find();
}

}  // namespace taas::plan
