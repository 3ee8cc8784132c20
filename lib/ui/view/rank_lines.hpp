#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ui/text/folding.hpp"
#include "ui/view/renderer.hpp"

namespace taas::ui {

/// What the rank wrote, to the byte.
std::string bytes_of(const OutputLine& line);

/// A finished line for the launcher's stdout or stderr.
struct ShownLine {
  Stream stream = Stream::kStdout;
  std::string text;  ///< prefix included, line end not
};

/// What of the ranks' output is shown, and how: the streams that the plan puts on the console, one line for the same
/// line of several ranks, prefixes where more than one rank is shown. A template of the user's turns folding off, since
/// whoever asks for one wants each rank's line.
class RankLines {
 public:
  explicit RankLines(const RendererOptions& options);

  /// The nodes of a generation have met: whose names are known only now.
  void update(const run::NodesGathered& gathered);
  [[nodiscard]] bool shows(const OutputLine& line) const;
  /// One rank alone is shown, with nothing in front of its lines: a pipe or a file gets the bytes that it wrote.
  [[nodiscard]] bool exact() const { return shown_ranks_ == 1 && prefixes_.empty(); }
  /// Takes a line (not a progress line); returns what is to be shown now.
  std::vector<ShownLine> add(const OutputLine& line);
  std::vector<ShownLine> due(Instant now) { return format(folding_.due(now)); }
  std::vector<ShownLine> flush() { return format(folding_.flush()); }
  [[nodiscard]] std::optional<Instant> next_deadline() const { return folding_.next_deadline(); }
  /// One line as it would be shown alone.
  [[nodiscard]] ShownLine format(const FoldedLine& line) const;

 private:
  [[nodiscard]] std::vector<ShownLine> format(const std::vector<FoldedLine>& lines) const;

  void choose_streams(const std::vector<RankPlace>& ranks);

  std::vector<plan::RankOutput> outputs_;
  std::optional<plan::OutputOptions> chosen_;
  std::vector<std::string> prefixes_;
  std::string prefix_template_;
  std::string role_;
  std::size_t shown_ranks_;
  Style stdout_style_;
  Style stderr_style_;
  Folding folding_;
  std::map<std::pair<Rank, Stream>, bool> open_;  // whether the last line shown has not ended
};

}  // namespace taas::ui
