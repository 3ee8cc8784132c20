#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

#include "ui/text/events.hpp"

namespace taas::ui {

/// A line and the ranks that said it, in the order in which they did.
struct FoldedLine {
  std::vector<Rank> ranks;
  Stream stream = Stream::kStdout;
  std::string text;
};

/// Folds the same line of several ranks into one. A line waits for the others for a short window, or until every shown
/// rank has said it; each rank's lines keep their order. Pure: the time comes with the lines.
class Folding {
 public:
  struct Options {
    std::size_t shown_ranks = 1;
    Duration window = std::chrono::milliseconds(100);
    std::size_t max_lines = 1000;      ///< the oldest goes out early when more are held
    std::size_t max_bytes = 1u << 20;  ///< likewise
  };
  explicit Folding(Options options) : options_(options) {}
  void set_shown_ranks(std::size_t ranks) { options_.shown_ranks = ranks; }

  /// The lines that are ready now, this one perhaps among them.
  std::vector<FoldedLine> add(OutputLine line);
  std::vector<FoldedLine> due(Instant now);
  /// Everything, at once.
  std::vector<FoldedLine> flush();
  /// When due() will have something to give.
  [[nodiscard]] std::optional<Instant> next_deadline() const;

 private:
  struct Held {
    FoldedLine line;
    Instant deadline;
  };
  Held* find_match(const OutputLine& line);
  FoldedLine take_front();
  std::vector<FoldedLine> take_ready(Instant now);

  Options options_;
  std::deque<Held> held_;
  std::size_t bytes_ = 0;                                // of text in held_
  std::uint64_t first_ = 0;                              // number of held_.front(), counted from the first line ever
  std::unordered_map<int, std::uint64_t> next_of_rank_;  // by rank: its next line cannot join a line before this number
};

}  // namespace taas::ui
