#include "runs/logs.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string_view>
#include <vector>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "command/command.hpp"
#include "command/documents.hpp"
#include "runs/past_runs.hpp"

namespace taas::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kLookAgainMs = 1000;             // where another machine writes, no event comes
constexpr std::size_t kLongestLine = 1 << 20;  // longer ones are several objects
constexpr int kLatestLines = 10;
constexpr off_t kLatestBytes = 16384;

/// Where a rank's log files are: storage::RunDirectory has it.
class LogPlaces {
 public:
  LogPlaces(const ui::RunSummary& run, int rank) : top_(run.folder), rank_(rank) {
    if (run.record.log_dir.empty()) return;
    const auto& nodes = run.node_of_rank;
    const auto index = static_cast<std::size_t>(rank);
    const int node = index < nodes.size() ? nodes[index] : 0;
    local_rank_ = index < nodes.size() ? static_cast<int>(std::count(nodes.begin(), nodes.begin() + rank, node)) : rank;
    top_ = run.record.log_dir + (node == 0 ? "" : fmt::format("/node_{}", node));
    generation_ = "attempt_";
  }

  /// In order.
  [[nodiscard]] std::vector<int> generations() const {
    std::vector<int> found;
    std::error_code failed;
    for (fs::directory_iterator entry(top_, failed), end; !failed && entry != end; entry.increment(failed)) {
      const auto name = entry->path().filename().string();
      if (name.starts_with(generation_)) found.push_back(std::atoi(name.c_str() + generation_.size()));
    }
    std::ranges::sort(found);
    return found;
  }
  [[nodiscard]] const std::string& top() const { return top_; }
  /// The folder of the rank's files, below top().
  [[nodiscard]] std::string folder(int generation) const {
    const auto folder = fmt::format("{}{}", generation_, generation);
    return local_rank_ < 0 ? folder : fmt::format("{}/{}", folder, local_rank_);
  }
  [[nodiscard]] std::string file(int generation, std::string_view stream) const {
    if (local_rank_ >= 0) return fmt::format("{}/std{}.log", folder(generation), stream);
    return fmt::format("{}/rank-{:04}.{}", folder(generation), rank_, stream);
  }

 private:
  std::string top_;
  int rank_;
  int local_rank_ = -1;  // where the place has it
  std::string generation_ = "generation-";
};

/// Where the last few lines of the file begin.
off_t begin_of_latest(const Fd& file) {
  struct stat found {};
  if (::fstat(file.get(), &found) != 0) return 0;
  const auto from = std::max<off_t>(0, found.st_size - kLatestBytes);
  std::string tail(static_cast<std::size_t>(found.st_size - from), '\0');
  const auto length = TEMP_FAILURE_RETRY(::pread(file.get(), tail.data(), tail.size(), from));
  tail.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  auto at = tail.size();
  for (int lines = 0; lines <= kLatestLines && at != 0; ++lines) {
    const auto end = tail.rfind('\n', at - 1);
    if (end == tail.npos) return lines == 0 ? from + static_cast<off_t>(tail.size()) : from;
    at = end;
  }
  return at == 0 ? from : from + static_cast<off_t>(at) + 1;
}

/// The files of one rank, each printed from where it was printed last.
class RankLogs {
 public:
  RankLogs(const ui::RunSummary& run, const LogPlaces& places, const LogsOptions& options)
      : run_(run), places_(places), options_(options) {}

  /// False: standard output takes no more.
  bool print_new() {
    const auto generations = places_.generations();
    for (int generation : generations) {
      if (options_.generation >= 0 && generation != options_.generation) continue;
      if (options_.latest && printed_.empty() && generation != generations.back()) continue;
      if (options_.out && !print_new_of(generation, "out")) return false;
      if (options_.err && !print_new_of(generation, "err")) return false;
    }
    has_begun_ = true;
    return true;
  }
  /// What has no line end, when no more will come; of a rank that has printed nothing, that there is nothing.
  bool print_rest() {
    if (any() && !write_head()) return false;
    for (auto& [name, begun] : begun_) {
      if (!begun.text.empty() && !write_line(begun, true)) return false;
    }
    return true;
  }
  [[nodiscard]] bool any() const { return !printed_.empty(); }

 private:
  struct Begun {
    LoggedLine line;
    std::string text;
  };

  struct Printed {
    ino_t file = 0;  // of the name when it was printed last
    off_t at = 0;    // in it
  };

  [[nodiscard]] Fd open(const std::string& name) const {
    return Fd(::open((places_.top() + "/" + name).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  }

  bool print_new_of(int generation, const char* stream) {
    const auto name = places_.file(generation, stream);
    const auto file = open(name);
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0) return true;
    auto [place, is_new] = printed_.try_emplace(name);
    auto& printed = place->second;
    if (is_new && options_.latest && !has_begun_) {
      printed = {found.st_ino, begin_of_latest(file)};
    } else if (is_new || printed.file != found.st_ino) {  // --log-limit: there is a former one
      if (!print_former(generation, stream, name, printed)) return false;
      printed = {found.st_ino, 0};
    }
    return print_new_in(file, generation, stream, name, printed.at);
  }

  /// What of the file before this one has not been printed; all of it, where nothing has.
  bool print_former(int generation, const char* stream, const std::string& name, const Printed& printed) {
    const auto file = open(name + ".1");
    struct stat found {};
    if (!file || ::fstat(file.get(), &found) != 0) return true;
    off_t at = found.st_ino == printed.file ? printed.at : 0;
    return print_new_in(file, generation, stream, name, at);
  }

  bool print_new_in(const Fd& file, int generation, const char* stream, const std::string& name, off_t& at) {
    auto& begun = begun_[name];
    std::array<char, 65536> piece{};
    for (;;) {
      const auto length = TEMP_FAILURE_RETRY(::pread(file.get(), piece.data(), piece.size(), at));
      if (length <= 0) return true;  // nothing, for now
      const std::string_view bytes(piece.data(), static_cast<std::size_t>(length));
      at += length;
      if (!options_.json) {
        if (!tell_file(name) || !write(bytes)) return false;
        continue;
      }
      begun.line.generation = generation;
      begun.line.stream = fmt::format("std{}", stream);
      if (!write_lines(begun, bytes)) return false;
    }
  }

  bool write_head() {
    return std::exchange(has_head_, true) || print_document(LogsDocument{run_.id, run_.folder, options_.rank}) == 0;
  }

  bool write_lines(Begun& begun, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto end = bytes.find('\n');
      begun.text += bytes.substr(0, end);
      const bool whole = end != bytes.npos;
      if ((whole || begun.text.size() > kLongestLine) && !write_line(begun, !whole)) return false;
      bytes.remove_prefix(whole ? end + 1 : bytes.size());
    }
    return true;
  }

  bool write_line(Begun& begun, bool open) {
    if (!write_head()) return false;
    begun.line.rank = options_.rank;
    begun.line.text = std::exchange(begun.text, {});
    begun.line.open = open;
    return write(published_text(PublishedWriter().write(begun.line)) + "\n");
  }

  /// As tail does it, where there is more than one.
  bool tell_file(const std::string& name) {
    const bool one =
        options_.out != options_.err && (options_.generation >= 0 || run_.restarts == 0) && !options_.follow;
    if (one || name == last_) return true;
    const bool first = last_.empty();
    last_ = name;
    return write(fmt::format("{}==> {} <==\n", first ? "" : "\n", name));
  }

  static bool write(std::string_view text) {
    static const Fd output(::dup(STDOUT_FILENO));
    return write_all(output, text).has_value();
  }

  const ui::RunSummary& run_;
  const LogPlaces& places_;
  const LogsOptions& options_;
  bool has_begun_ = false;  // what was there has been printed
  std::map<std::string, Printed> printed_;
  bool has_head_ = false;
  std::map<std::string, Begun> begun_;  // the lines whose ends are not there yet
  std::string last_;
};

/// Until something is written in the run's folder or those of its generations, or for a second.
class Changes {
 public:
  Changes(std::string run, const LogPlaces& places)
      : run_(std::move(run)), places_(places), events_(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

  void wait() {
    watch(run_);
    watch(places_.top());
    for (int generation : places_.generations()) watch(places_.top() + "/" + places_.folder(generation));
    pollfd wanted{events_.get(), POLLIN, 0};
    ::poll(&wanted, 1, kLookAgainMs);
    std::array<char, 16384> ignored{};
    while (::read(events_.get(), ignored.data(), ignored.size()) > 0) {
    }
  }

 private:
  void watch(const std::string& path) {
    ::inotify_add_watch(events_.get(), path.c_str(), IN_MODIFY | IN_CREATE | IN_MOVED_TO | IN_ONLYDIR);
  }

  std::string run_;  // its journal tells the end
  const LogPlaces& places_;
  Fd events_;
};

}  // namespace

Result<int> print_logs(const ui::RunSummary& run, const LogsOptions& options) {
  const LogPlaces places(run, options.rank);
  RankLogs logs(run, places, options);
  Changes changes(run.folder, places);
  for (;;) {
    const bool ended = !options.follow || has_ended(run.folder);
    if (!logs.print_new()) return 0;  // whoever reads has read enough
    if (ended || run.state == "lost") break;
    changes.wait();
  }
  if (options.json && !logs.print_rest()) return 0;
  if (logs.any()) return 0;
  return usage_error_with_fix(fmt::format("rank {} has no log files in {}", options.rank, places.top()),
                              "ranks of other nodes have theirs there, unless the folder is shared");
}

}  // namespace taas::cli
