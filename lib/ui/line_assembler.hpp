#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace taas::ui {

/// A line of text without its end. A progress line is a bar's state that the program is about to draw over. An open one
/// has not ended: what follows it goes on with the same line, and may be empty.
struct AssembledLine {
  std::string text;
  bool progress = false;
  bool open = false;
  friend bool operator==(const AssembledLine&, const AssembledLine&) = default;
};

/// Makes lines of the bytes of one stream, however the bytes arrive in pieces. Nothing is lost but line ends ("\n",
/// "\r\n") and the states that a progress bar drew over with '\r'. A line of more than 64 KiB comes in pieces, none of
/// which splits a UTF-8 sequence.
class LineAssembler {
 public:
  static constexpr std::size_t kMaxLine = 64 * 1024;

  std::vector<AssembledLine> add(std::string_view bytes);

  /// Whether there is text that flush_partial() would give out.
  [[nodiscard]] bool has_partial() const { return !line_.empty() && !shown_; }
  /// The stream has been quiet for a while: what is there without a line end, a prompt or a bar's state, is given out.
  std::vector<AssembledLine> flush_partial();
  /// The stream has ended: what is left, as a line.
  std::vector<AssembledLine> finish();

 private:
  void append(std::string_view text, std::vector<AssembledLine>& lines);
  void end_line(std::vector<AssembledLine>& lines);
  void draw_over(std::vector<AssembledLine>& lines);
  void start_line();

  std::string line_;              // since the last '\n' or '\r'
  std::string bar_;               // what the last '\r' is about to draw over: still visible while line_ is empty
  bool carriage_return_ = false;  // the last byte was '\r': the next one tells whether that is a line end
  bool in_bar_ = false;           // there was a '\r' in this line
  bool shown_ = false;            // line_ has been given out as a bar's state
};

}  // namespace taas::ui
