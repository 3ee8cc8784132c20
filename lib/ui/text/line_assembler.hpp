#pragma once

#include <optional>
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
  std::optional<std::string> raw = {};  ///< the bytes that came for it, where they are not the text and its usual end
  friend bool operator==(const AssembledLine&, const AssembledLine&) = default;
};

/// What follows the text of a line, a progress line or an open one in most streams.
std::string_view usual_end(bool progress, bool open);

/// Makes lines of the bytes of one stream, however the bytes arrive in pieces. A line of more than 64 KiB comes in open
/// pieces, none of which splits a UTF-8 sequence. The raw bytes of all lines, one after the other, are the stream.
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
  void end_line(std::string_view end, std::vector<AssembledLine>& lines);
  void draw_over(std::vector<AssembledLine>& lines);
  void start_line();
  /// A line whose raw bytes are what has not been given out up to `size` bytes of line_, and then `end`.
  AssembledLine give(AssembledLine line, std::size_t size, std::string_view end);
  /// That many bytes of line_, taken away from it.
  AssembledLine give_piece(std::size_t size);

  std::string line_;              // since the last '\n' or '\r'
  std::string bar_;               // what the last '\r' is about to draw over: still visible while line_ is empty
  bool carriage_return_ = false;  // the last byte was '\r': the next one tells whether that is a line end
  bool in_bar_ = false;           // there was a '\r' in this line
  bool shown_ = false;            // line_ has been given out as a bar's state
  std::string before_;            // raw bytes in front of line_ that have not been given out
  std::size_t given_ = 0;         // of line_, as raw bytes
};

}  // namespace taas::ui
