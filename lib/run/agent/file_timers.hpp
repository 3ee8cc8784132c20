#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace taas::run {

/// What a process asks for with torch's FileTimerClient: to get `signal` unless it releases the timer in time. A line
/// of JSON, as in torch/distributed/elastic/timer/file_based_local_timer.py.
struct FileTimer {
  int pid = 0;
  std::string scope;
  double expires_at = 0;  ///< s since the epoch; negative: the timer of that scope is released
  int signal = 0;         ///< 0 or less: none, its end is only said
};

/// Nothing where the line is no such request.
std::optional<FileTimer> parse_file_timer(std::string_view line);

/// The timers that processes of one node have set and not released. A process has one for each of its scopes.
class FileTimers {
 public:
  static constexpr std::size_t kMost = 4096;

  /// Sets, replaces or releases. False: there are so many already that this one is left out.
  bool take(FileTimer timer);
  /// When the first of them expires.
  [[nodiscard]] std::optional<double> next() const;
  /// One for each process that has expired timers: the first of these with a signal, or the first. All timers of such a
  /// process are forgotten.
  std::vector<FileTimer> expire(double now);
  /// Of these processes.
  template <class IsGone>
  void forget_if(IsGone is_gone) {
    std::erase_if(timers_, [&](const auto& entry) { return is_gone(entry.first.first); });
  }

 private:
  std::map<std::pair<int, std::string>, FileTimer> timers_;
};

}  // namespace taas::run
