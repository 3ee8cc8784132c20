#include "runs/past_runs.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>

#include <algorithm>
#include <boost/describe/members.hpp>
#include <boost/mp11/algorithm.hpp>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/fd.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "look/live_runs.hpp"
#include "proc/machine/machine.hpp"
#include "storage/run_directory.hpp"

namespace taas::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;

constexpr std::uintmax_t kHead = 64 * 1024, kTail = 256 * 1024;  // bytes of a journal that the list reads
constexpr std::size_t kMostNamed = 8;

/// What the JSON has of it; the rest stays as it is, so that records of older and newer releases are read.
template <class T>
void read_members(const json::object& object, T& value) {
  using Members = boost::describe::describe_members<T, boost::describe::mod_public>;
  boost::mp11::mp_for_each<Members>([&](auto member) {
    const auto* found = object.if_contains(member.name);
    if (found == nullptr) return;
    JsonReader reader;
    auto read = value.*member.pointer;
    if (reader.read(*found, read)) value.*member.pointer = std::move(read);
  });
}

const json::object* object_in(const json::object& object, const char* name) {
  const auto* found = object.if_contains(name);
  return found == nullptr ? nullptr : found->if_object();
}

double number_in(const json::object& object, const char* name) {
  const auto* found = object.if_contains(name);
  return found != nullptr && found->is_number() ? found->to_number<double>() : 0;
}

std::vector<json::object> lines_of(const std::string& text) {
  std::vector<json::object> lines;
  for (auto line : split(text, '\n')) {
    if (line.empty()) continue;
    auto value = parse_json(line);
    if (value && value->is_object()) lines.push_back(std::move(value->get_object()));
  }
  return lines;
}

std::string read_piece(std::ifstream& file, std::uintmax_t at, std::uintmax_t most) {
  std::string piece(most, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(at));
  file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
  piece.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return piece;
}

/// The first `head` and the last `tail` bytes in whole lines; all of a file that has no more.
std::vector<json::object> ends_of_journal(const std::string& path, std::uintmax_t head, std::uintmax_t tail) {
  std::error_code failed;
  const auto size = fs::file_size(path, failed);
  std::ifstream file(path, std::ios::binary);
  if (failed || !file) return {};
  if (size <= head + tail) return lines_of(read_piece(file, 0, size));
  auto lines = lines_of(read_piece(file, 0, head));
  const auto end = read_piece(file, size - tail, tail);
  auto last = lines_of(end.substr(std::min(end.size(), end.find('\n'))));
  lines.insert(lines.end(), std::make_move_iterator(last.begin()), std::make_move_iterator(last.end()));
  return lines;
}

/// "03:17" of today, "25 Nov 03:17" before.
std::string clock_text(std::time_t at) {
  const auto now = std::time(nullptr);
  std::tm then{}, today{};
  ::localtime_r(&at, &then);
  ::localtime_r(&now, &today);
  const bool same = then.tm_yday == today.tm_yday && then.tm_year == today.tm_year;
  return same ? fmt::format("{:%H:%M}", then) : fmt::format("{:%d %b %H:%M}", then);
}

std::time_t parse_clock(const std::string& started) {
  std::tm parts{};
  return ::strptime(started.c_str(), "%Y-%m-%dT%H:%M:%S", &parts) == nullptr ? 0 : ::timegm(&parts);
}

/// "stopped by SIGTERM", "rank 2 raised ValueError: loss is nan", "ok".
std::string how_it_ended(const json::object& verdict) {
  const auto cause = text_in(verdict, "cause");
  return cause == "success" ? "ok" : text_in(verdict, "summary");
}

void add_line(const json::object& line, ui::RunSummary& run) {
  run.seconds = std::max(run.seconds, number_in(line, "t"));
  const auto event = text_in(line, "event"), action = text_in(line, "action");
  if (event == "run_started") {
    if (const auto* record = object_in(line, "record")) {
      run.has_record = true;
      read_members(*record, run.record);
      run.ranks = run.record.ranks;
    }
  }
  if (event == "source_seen") run.changes = integer_in(line, "changes");
  if (event == "nodes_gathered") {
    run.ranks = integer_in(line, "world_size");
    if (const auto* nodes = line.if_contains("node_of_rank"); nodes != nullptr && nodes->is_array()) {
      run.node_of_rank.clear();
      for (const auto& node : nodes->get_array())
        run.node_of_rank.push_back(node.is_int64() ? static_cast<int>(node.get_int64()) : 0);
    }
  }
  if (action == "start_generation") run.restarts = integer_in(line, "generation");
  if (action != "finish") return;
  if (const auto* verdict = object_in(line, "verdict")) {
    run.state = "ended";
    run.exit_code = integer_in(*verdict, "exit_code");
    run.ended = how_it_ended(*verdict);
    run.restarts = integer_in(*verdict, "generation");
  }
}

/// Whether its launcher has it open, on whatever machine.
bool is_locked(const std::string& journal) {
  const Fd file(::open(journal.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  return file && ::flock(file.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

ui::RunSummary read_run(const fs::path& folder, const std::string& host) {
  ui::RunSummary run;
  run.id = folder.filename().string();
  run.folder = folder.string();
  for (const auto& line : ends_of_journal((folder / "journal.jsonl").string(), kHead, kTail)) add_line(line, run);
  run.number = run.record.number;
  std::error_code failed;
  const auto changed = fs::last_write_time(folder / "journal.jsonl", failed);
  const auto last = std::chrono::system_clock::to_time_t(std::chrono::file_clock::to_sys(changed));
  auto began = parse_clock(run.record.started);
  if (began == 0) began = last - static_cast<std::time_t>(run.seconds);
  run.began = clock_text(began);
  if (!run.state.empty()) return run;
  const bool here = !run.has_record || run.record.host == host;
  run.state = is_locked(run.folder + "/journal.jsonl") ? "running" : here ? "lost" : "unknown";
  run.seconds = std::max(run.seconds, run.state == "running" ? std::difftime(std::time(nullptr), began) : 0);
  return run;
}

/// Where the file system has no locks, those that answer are under way.
void ask_the_silent(std::vector<ui::RunSummary>& runs, const Environment& environment) {
  const auto is_silent = [](const ui::RunSummary& run) { return run.state == "lost" || run.state == "unknown"; };
  if (std::ranges::none_of(runs, is_silent)) return;
  const auto live = find_live_runs(environment);
  if (!live) return;
  for (auto& run : runs) {
    const auto answers = std::ranges::find(*live, run.folder + "/output", &LiveRun::folder) != live->end();
    if (is_silent(run) && answers) run.state = "running";
  }
}

/// The order in which they began; numbers of one folder are given in it.
bool began_after(const ui::RunSummary& a, const ui::RunSummary& b) {
  if (a.number > 0 && b.number > 0) return a.number > b.number;
  return a.id > b.id;
}

std::string name_of(const ui::RunSummary& run) { return run.number > 0 ? std::to_string(run.number) : run.id; }

Error no_runs_there(const std::string& output) {
  return usage_error_with_fix(fmt::format("{}: no runs are there", output), "--output names another folder");
}

}  // namespace

Result<std::vector<ui::RunSummary>> find_runs(const std::string& output, const Environment& environment) {
  std::error_code failed;
  const auto place = fs::weakly_canonical(fs::absolute(output, failed), failed);
  if (!fs::is_directory(place, failed)) {
    return no_runs_there(output);
  }
  const auto host = hostname();
  std::vector<ui::RunSummary> runs;
  for (fs::directory_iterator entry(place, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code unknown;
    const bool is_run = entry->is_directory(unknown) && !entry->is_symlink(unknown) &&
                        fs::is_regular_file(entry->path() / "journal.jsonl", unknown);
    if (is_run) runs.push_back(read_run(entry->path(), host));
  }
  ask_the_silent(runs, environment);
  std::ranges::sort(runs, began_after);
  return runs;
}

Result<ui::RunSummary> choose_run(const std::vector<ui::RunSummary>& runs, const std::string& wanted,
                                  const std::string& output) {
  if (runs.empty()) return no_runs_there(output);
  if (wanted.empty() || wanted == "latest") return runs.front();
  std::vector<const ui::RunSummary*> fitting;
  for (const auto& run : runs) {
    if (run.id == wanted || (run.number > 0 && std::to_string(run.number) == wanted)) return run;
    if (run.id.starts_with(wanted)) fitting.push_back(&run);
  }
  if (fitting.size() == 1) return *fitting.front();
  std::vector<std::string> names;
  for (const auto& run : runs) {
    if (names.size() < kMostNamed) names.push_back(name_of(run));
  }
  return usage_error_with_fix(fmt::format("{}: {}", wanted, fitting.empty() ? "no such run" : "several runs begin so"),
                              fmt::format("the newest are {}", fmt::join(names, ", ")));
}

std::vector<json::object> read_journal(const std::string& folder) {
  const auto text = read_file(folder + "/journal.jsonl");
  return lines_of(text ? *text : std::string());
}

std::string text_in(const json::object& object, const char* name) {
  const auto* found = object.if_contains(name);
  return found != nullptr && found->is_string() ? std::string(found->get_string()) : std::string();
}

int integer_in(const json::object& object, const char* name) {
  const auto* found = object.if_contains(name);
  boost::system::error_code odd;
  return found != nullptr && found->is_number() ? found->to_number<int>(odd) : 0;
}

bool has_ended(const std::string& folder) {
  const auto lines = ends_of_journal(folder + "/journal.jsonl", 0, kTail);
  return std::ranges::any_of(lines, [](const json::object& line) { return text_in(line, "action") == "finish"; });
}

bool has_unpublished_files(const std::string& folder) {
  std::error_code failed;
  std::vector<fs::path> places{folder + "/.staging", folder + "/private"};
  for (fs::directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    if (entry->path().filename().string().starts_with("code-"))
      places.push_back(entry->path());  // what ranks left there
  }
  for (const auto& place : places) {
    failed.clear();
    for (fs::recursive_directory_iterator entry(place, failed), end; !failed && entry != end; entry.increment(failed)) {
      std::error_code unknown;
      if (!entry->is_directory(unknown)) return true;
    }
  }
  return false;
}

}  // namespace taas::cli
