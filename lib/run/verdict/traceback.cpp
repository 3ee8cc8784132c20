#include "run/verdict/traceback.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.hpp"
#include "run/verdict/exception_group.hpp"
#include "run/verdict/native_error.hpp"

namespace taas::run {
namespace {

constexpr std::size_t kMaxMessageLines = 8;  // that are worth keeping
constexpr std::size_t kLongestMessage = 30;  // then it is taken for output that followed, unless it is indented

bool is_header(std::string_view line) { return contains(line, "Traceback (most recent call last)"); }

bool is_frame(std::string_view line) { return line.starts_with("  File \""); }

/// The interpreter prints a syntax error in the program itself without a header. Its line ends in a number, other than
/// the frames of faulthandler: '  File "a.py", line 3 in work'.
bool is_syntax_error(std::string_view line) {
  constexpr std::string_view kLine = "\", line ";
  auto number = line.rfind(kLine);
  return is_frame(line) && number != line.npos &&
         line.find_first_not_of("0123456789", number + kLine.size()) == line.npos;
}

/// "    ~~~~^^^^": where in the source line above.
bool is_marks(std::string_view line) { return line.find_first_not_of(" ~^") == line.npos; }

bool links_exceptions(std::string_view line) {
  return line.starts_with("During handling of the above exception") ||
         line.starts_with("The above exception was the direct cause");
}

/// What follows is not the exception's message any more.
bool ends_message(std::string_view line) {
  return is_blank(line) || line.starts_with('[') || line.starts_with("frame #") || line.starts_with("Exception ") ||
         starts_fatal_error(line);
}

bool is_ignored_by_python(std::span<const std::string> lines, std::size_t header) {
  return header > 0 && contains(lines[header - 1], "Exception ignored in");
}

/// Python says so in the line before, and so do its logging and asyncio.
bool is_of_main(std::span<const std::string> lines, std::size_t header) {
  constexpr std::array<std::string_view, 6> kOthers{"Exception in thread",   "Process ",           "--- Logging error",
                                                    "Exception in callback", "Task exception was", "future: <"};
  if (header == 0) return true;
  auto before = without_rank_prefix(lines[header - 1]);
  return std::none_of(kOthers.begin(), kOthers.end(), [&](auto words) { return before.starts_with(words); });
}

/// Reads one traceback line by line. Lines of other threads that lack the prefix are passed over.
class Reader {
 public:
  Reader(std::span<const std::string> lines, std::size_t begin) : lines_(lines), next_(begin) {
    result_.begin = begin;
    prefix_ = lines[begin].substr(0, lines[begin].size() - without_rank_prefix(lines[begin]).size());
    if (!is_syntax_error(without_rank_prefix(lines[begin]))) ++next_;
  }

  std::optional<Traceback> read() {
    read_frames();
    if (result_.raised.empty()) return std::nullopt;
    read_message();
    result_.end = next_;
    result_.prefix = prefix_;
    return std::move(result_);
  }

 private:
  [[nodiscard]] bool is_ours(std::size_t index) const { return lines_[index].starts_with(prefix_); }
  [[nodiscard]] std::string_view text(std::size_t index) const {
    return std::string_view(lines_[index]).substr(prefix_.size());
  }

  void read_frames() {
    for (; next_ < lines_.size() && result_.raised.empty(); ++next_) {
      if (!is_ours(next_)) continue;
      auto line = text(next_);
      if (is_header(line)) return;  // this one was cut off
      if (!line.starts_with(' ') && !is_blank(line)) result_.raised = line;
      if (is_frame(line)) result_.frames.push_back({std::string(line), ""});
      bool is_source = line.starts_with("    ") && !is_marks(line) && !result_.frames.empty();
      if (is_source && result_.frames.back().source.empty()) result_.frames.back().source = line;
    }
  }

  void read_message() {
    for (std::size_t count = 0; next_ < lines_.size() && count < kLongestMessage; ++next_) {
      if (!is_ours(next_) || ends_message(text(next_))) return;
      if (!std::isspace(static_cast<unsigned char>(text(next_).front()))) ++count;
      if (result_.message.size() < kMaxMessageLines) result_.message.emplace_back(text(next_));
    }
  }

  std::span<const std::string> lines_;
  std::size_t next_;
  std::string prefix_;
  Traceback result_;
};

bool continues(std::span<const std::string> lines, const std::vector<Traceback>& found, std::size_t begin) {
  if (found.empty()) return false;
  auto between = lines.subspan(found.back().end, begin - found.back().end);
  return std::any_of(between.begin(), between.end(),
                     [](std::string_view line) { return links_exceptions(without_rank_prefix(line)); });
}

bool is_own(const Frame& frame) {
  constexpr std::array<std::string_view, 4> kForeign{"/site-packages/", "/dist-packages/", "/lib/python3",
                                                     "\"<frozen "};
  return std::none_of(kForeign.begin(), kForeign.end(),
                      [&](std::string_view part) { return contains(frame.where, part); });
}

}  // namespace

bool is_blank(std::string_view line) { return line.find_first_not_of(" \t") == line.npos; }

bool says_nothing(std::string_view line) {
  auto text = without_rank_prefix(line);
  return is_blank(text) || text.starts_with("frame #") || text.starts_with("Exception raised from");
}

std::string_view without_rank_prefix(std::string_view line) {
  constexpr std::string_view kStart = "[rank";
  while (line.starts_with(kStart)) {
    auto digits = line.find_first_not_of("0123456789", kStart.size());
    if (digits == line.npos || digits == kStart.size() || !line.substr(digits).starts_with("]: ")) break;
    line.remove_prefix(digits + 3);
  }
  return line;
}

std::vector<Traceback> find_tracebacks(std::span<const std::string> printed) {
  const auto flat = flatten_exception_groups(printed);
  const std::span<const std::string> lines(flat);
  std::vector<Traceback> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    auto line = without_rank_prefix(lines[i]);
    if (!is_header(line) && !is_syntax_error(line)) continue;
    auto traceback = Reader(lines, i).read();
    if (!traceback) continue;
    traceback->continues = continues(lines, found, i);
    traceback->of_main = traceback->continues ? found.back().of_main : is_of_main(lines, i);
    i = traceback->end - 1;
    if (!is_ignored_by_python(lines, traceback->begin)) found.push_back(std::move(*traceback));
  }
  return found;
}

std::vector<Frame> own_frames(const Traceback& traceback) {
  std::vector<Frame> own;
  std::copy_if(traceback.frames.begin(), traceback.frames.end(), std::back_inserter(own), is_own);
  return own.empty() ? traceback.frames : own;
}

bool starts_fatal_error(std::string_view line) {
  line = without_rank_prefix(line);
  return is_header(line) || is_syntax_error(line) || starts_native_error(line);
}

}  // namespace taas::run
