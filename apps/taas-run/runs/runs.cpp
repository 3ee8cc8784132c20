#include "runs/runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>
#include <utility>

#include "base/exit_status.hpp"
#include "base/folders/held_folder.hpp"
#include "base/shell.hpp"
#include "base/text.hpp"
#include "command/command.hpp"
#include "command/documents.hpp"
#include "look/live_runs.hpp"
#include "plan/options/options.hpp"
#include "run/events/words.hpp"
#include "runs/logs.hpp"
#include "runs/past_runs.hpp"
#include "storage/run_directory.hpp"
#include "ui/text/quantities.hpp"
#include "ui/text/rank_set.hpp"
#include "ui/text/style.hpp"
#include "ui/text/utf8.hpp"

namespace taas::cli {
namespace {

namespace fs = std::filesystem;
namespace json = boost::json;
using ui::RunSummary;

constexpr int kColumnsOfNoTerminal = 1 << 14;
constexpr auto kBeforeItListens = std::chrono::milliseconds(200);  // a run to commands, from its start on
constexpr int kTries = 10;
constexpr const char* kThisProgram = "/proc/self/exe";
constexpr const char* kRunHelp = "Its number, its id or the beginning of it; without one the newest";

int columns_of_terminal() {
  winsize size{};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kColumnsOfNoTerminal;
}

/// What all of them take.
struct Command : Subcommand {
  Command(const std::string& name, const std::string& what, const Environment& variables)
      : Subcommand(name, what), environment(variables) {
    app.add_option("--output", output, "Folder of the runs")->capture_default_str();
  }

  CLI::App& with_run() {
    app.add_option("RUN", run, kRunHelp);
    return app;
  }
  [[nodiscard]] Result<std::vector<RunSummary>> all() const { return find_runs(output, environment); }
  [[nodiscard]] Result<RunSummary> chosen(const std::string& wanted) const {
    auto runs = all();
    return runs ? choose_run(*runs, wanted, output) : runs.error();
  }
  [[nodiscard]] ui::Style style() const {
    return ui::Style(ui::wants_color(plan::Color::kAuto, environment, ::isatty(STDOUT_FILENO) == 1));
  }

  const Environment& environment;
  std::string output = plan::OutputOptions().directory;
  std::string run;
};

std::string called(const RunSummary& run) {
  return run.number > 0 ? fmt::format("run {} ({})", run.number, run.id) : fmt::format("run {}", run.id);
}

Result<int> list(const std::vector<std::string>& arguments, const Environment& environment) {
  Command command("runs", "Lists runs, the newest first.", environment);
  bool failed = false, running = false, everything = false;
  std::size_t most = 20;
  std::string with;
  auto& app = command.app;
  app.add_flag("--failed", failed, "Those alone that did not end well");
  app.add_flag("--running", running, "Those alone that are under way");
  app.add_option("--with", with, "Those alone whose command line contains this, such as lr=0.1");
  app.add_option("-n", most, "So many")->capture_default_str();
  app.add_flag("--all", everything, "All of them");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  auto runs = command.all();
  if (!runs) return runs.error();
  std::erase_if(*runs, [&](const RunSummary& run) {
    const bool fails = run.state == "lost" || (run.state == "ended" && run.exit_code != 0);
    return (failed && !fails) || (running && run.state != "running") ||
           !contains(fmt::format("{}", fmt::join(run.record.command, " ")), with);
  });
  if (!everything && runs->size() > most) runs->resize(most);
  if (command.as_json) return print_document(RunsDocument{std::move(*runs)});
  return print_now(ui::runs_page(*runs, command.style(), columns_of_terminal())) ? 0 : 1;
}

std::string source_text(const RunSummary& run) {
  const auto& source = run.record.source;
  if (source.commit.empty()) return {};
  auto text = source.commit.substr(0, 12);
  if (!source.branch.empty()) text += fmt::format(" on {}", source.branch);
  if (run.changes > 0) text += fmt::format(", {} changed", plural(run.changes, "file"));
  return text;
}

std::string versions_text(const run::RunVersions& versions) {
  auto text = "taas-run " + versions.taas_run;
  if (!versions.python.empty()) text += ", Python " + versions.python;
  if (!versions.torch.empty()) text += ", torch " + versions.torch;
  if (!versions.nccl.empty()) text += ", NCCL " + versions.nccl;
  return text;
}

/// How a rank has ended; nothing: the line tells of something else.
std::optional<ExitStatus> end_of_rank(const json::object& line) {
  const auto* status = line.if_contains("status");
  if (text_in(line, "event") != "rank_exited" || status == nullptr || !status->is_object()) return std::nullopt;
  return ExitStatus{integer_in(status->get_object(), "code"), integer_in(status->get_object(), "signal")};
}

std::string ends_text(const std::vector<Rank>& ranks, const ExitStatus& how) {
  const bool one = ranks.size() == 1;
  const auto who = fmt::format("{} {}", one ? "rank" : "ranks", ui::format_rank_set(ranks));
  if (how.signal != 0) return fmt::format("{} {} killed by {}", who, one ? "is" : "are", run::signal_name(how.signal));
  const auto ends = one ? "ends" : "end";
  return how.code == 0 ? fmt::format("{} {} well", who, ends)
                       : fmt::format("{} {} with exit code {}", who, ends, how.code);
}

/// What else happened, in a line; empty: it is nothing that a user would ask for.
std::string event_text(const json::object& line) {
  const auto text = [&](const char* name) { return printable(text_in(line, name)); };
  const auto event = text("event"), action = text("action");
  if (event == "nodes_gathered") return fmt::format("{} are to run", plural(integer_in(line, "world_size"), "rank"));
  if (action == "start_generation") return fmt::format("generation {} starts", integer_in(line, "generation"));
  if (event == "store_reached") return "the first rank joins";
  if (event == "node_lost") return fmt::format("{} is lost: {}", text("name"), text("reason"));
  if (action == "notify") return text("text");
  const auto* verdict = line.if_contains("verdict");
  if (action == "report_failure" && verdict != nullptr && verdict->is_object()) {
    const auto* summary = verdict->get_object().if_contains("summary");
    return summary != nullptr && summary->is_string() ? "failed: " + printable(std::string(summary->get_string())) : "";
  }
  return {};
}

/// Ranks that end alike after each other are one line, which has the time of the last one.
std::vector<Happening> timeline(const std::vector<json::object>& journal) {
  std::vector<Happening> happened;
  std::vector<Rank> ended;
  ExitStatus how;
  double at = 0;
  const auto tell_ends = [&] {
    if (!ended.empty()) happened.back().text = ends_text(std::exchange(ended, {}), how);
  };
  for (const auto& line : journal) {
    if (const auto* t = line.if_contains("t"); t != nullptr && t->is_number()) at = t->to_number<double>();
    if (const auto end = end_of_rank(line)) {
      if (end->code != how.code || end->signal != how.signal) tell_ends();
      if (ended.empty()) happened.emplace_back();
      ended.push_back(Rank{integer_in(line, "rank")});
      how = *end;
      happened.back().t = at;
    } else if (const auto text = event_text(line); !text.empty()) {
      tell_ends();
      happened.push_back({at, text});
    }
  }
  tell_ends();
  return happened;
}

Result<int> show(const std::vector<std::string>& arguments, const Environment& environment) {
  Command command("show", "Shows what a run was and what happened in it, in order.", environment);
  command.with_run();
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  auto run = command.chosen(command.run);
  if (!run) return run.error();
  if (command.as_json) return print_document(ShowDocument{*run, timeline(read_journal(run->folder))});
  const auto& record = run->record;
  std::string text;
  const auto add_line = [&text, columns = columns_of_terminal()](const std::string& line, std::size_t indent) {
    text += ui::in_rows(line, columns, indent) + '\n';
  };
  const auto add = [&](const char* name, const std::string& value) {
    if (!value.empty()) add_line(fmt::format("  {:<9}{}", name, printable(value)), 11);
  };
  add_line(fmt::format("{}: {}", called(*run), run->state == "ended" ? printable(run->ended) : run->state), 4);
  add("command", fmt::format("{}", fmt::join(record.command, " ")));
  add("folder", record.folder);
  add("began", run->began + (record.host.empty() ? "" : fmt::format(" on {} by {}", record.host, record.user)));
  add("took", fmt::format("{}{}", ui::short_duration(run->seconds),
                          run->restarts > 0 ? ", " + plural(run->restarts, "restart") : std::string()));
  add("ranks", fmt::format("{}", run->ranks));
  add("with", run->has_record ? versions_text(record.versions) : std::string());
  add("commit", source_text(*run));
  add("job", record.job.array_task.empty() ? record.job.id : record.job.array_job + "_" + record.job.array_task);
  add("files", run->folder);
  for (const auto& [at, what] : timeline(read_journal(run->folder))) {
    add_line(fmt::format("{:>10.3f} s  {}", at, what), 14);
  }
  return print_now(text) ? 0 : 1;
}

Result<int> logs(const std::vector<std::string>& arguments, const Environment& environment) {
  Command command("logs", "Prints what a rank has printed.", environment);
  LogsOptions options;
  bool out = false, err = false;
  auto& app = command.with_run();
  app.add_option("-r,--rank", options.rank, "Which rank")->check(CLI::NonNegativeNumber)->capture_default_str();
  app.add_option("-g,--generation", options.generation, "Of this start alone; 0 is the first")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("-f,--follow", options.follow, "Goes on until the run ends, over restarts");
  app.add_flag("--stdout", out, "Standard output alone");
  app.add_flag("--stderr", err, "Standard error alone");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  auto run = command.chosen(command.run);
  if (!run) return run.error();
  options.out = out || !err;
  options.err = err || !out;
  options.json = command.as_json;
  return print_logs(*run, options);
}

/// What it prints from now on, for whoever has come late. Control-C ends this and not the run.
Result<int> attach(const std::vector<std::string>& arguments, const Environment& environment) {
  Command command("attach", "Shows what a rank of a run that is under way prints, until the run ends.", environment);
  LogsOptions options;
  options.follow = options.latest = true;
  auto& app = command.with_run();
  app.add_option("-r,--rank", options.rank, "Which rank")->check(CLI::NonNegativeNumber)->capture_default_str();
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  auto run = command.chosen(command.run);
  if (!run) return run.error();
  if (run->state != "running") {
    return usage_error_with_fix(fmt::format("attach: {} is not under way", called(*run)),
                                fmt::format("taas-run logs {} prints what its ranks have printed", run->id));
  }
  options.json = command.as_json;
  if (!options.json) {
    std::fputs(
        fmt::format("taas-run: rank {} of {}; control-C leaves it running\n", options.rank, called(*run)).c_str(),
        stderr);
  }
  auto printed = print_logs(*run, options);
  if (!printed) return printed.error();
  auto ended = command.chosen(run->id);
  if (!ended || ended->exit_code < 0) return *printed;  // whoever reads has read enough, or its launcher is gone
  if (!options.json)
    std::fputs(fmt::format("taas-run: {}: {}\n", called(*ended), printable(ended->ended)).c_str(), stderr);
  return ended->exit_code;
}

/// Of another folder's runs none is stopped without its name.
Result<std::string> only_one_here(const Command& command) {
  auto runs = command.all();
  if (!runs) return runs.error();
  std::vector<std::string> names;
  for (const auto& run : *runs) {
    if (run.state == "running") names.push_back(run.id);
  }
  if (names.size() == 1) return names.front();
  if (names.empty()) {
    return usage_error_with_fix(fmt::format("stop: no run of {} is under way", command.output),
                                "taas-run runs lists those that were");
  }
  return usage_error_with_fix("stop: several runs are under way", fmt::format("name one: {}", fmt::join(names, ", ")));
}

Result<int> stop(const std::vector<std::string>& arguments, const Environment& environment) {
  Command command("stop", "Stops a run that is under way on this machine, as SIGTERM does: ranks may save.",
                  environment);
  command.with_run();
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  auto wanted = command.run;
  if (wanted.empty()) {
    auto only = only_one_here(command);
    if (!only) return only.error();
    wanted = *only;
  }
  auto live = find_live_runs(environment);
  if (!live) return live.error();
  if (auto run = command.chosen(wanted)) {  // by its number, where the folder has it
    const auto is_it = [&](const LiveRun& one) { return one.folder == run->folder + "/output"; };
    for (int tries = 0; run->state == "running" && std::ranges::none_of(*live, is_it) && tries < kTries; ++tries) {
      std::this_thread::sleep_for(kBeforeItListens / 2);
      live = find_live_runs(environment);
      if (!live) return live.error();
    }
    const auto found = std::ranges::find_if(*live, is_it);
    if (found == live->end()) {
      return usage_error(fmt::format("stop: {} is not under way on this machine", called(*run)));
    }
    wanted = found->name;
  }
  auto chosen = choose_live_run(std::move(*live), wanted);
  if (!chosen) return chosen.error();
  if (auto told = ask_run(chosen->socket, R"({"ask":"stop"})"); !told) return told.error();
  if (command.as_json) return print_document(StopDocument{chosen->name});
  return print_now(fmt::format("run {} was told to stop\n", chosen->name)) ? 0 : 1;
}

std::map<std::string, std::string> by_name(const std::vector<std::string>& variables) {
  std::map<std::string, std::string> values;
  for (const auto& one : variables) values[one.substr(0, one.find('='))] = one.substr(one.find('=') + 1);
  return values;
}

/// What the environment has now that it had not, or otherwise, then.
std::vector<std::string> changed_variables(const run::RunRecord& record, const Environment& environment) {
  std::vector<std::string> changed;
  for (const auto& assignment : record.environment) {
    const auto equals = assignment.find('=');
    const auto found = environment.find(assignment.substr(0, equals));
    if (found == environment.end() || found->second != assignment.substr(equals + 1)) changed.push_back(assignment);
  }
  return changed;
}

/// What somebody else has written into a journal is not run in this user's name.
bool is_ours(const RunSummary& run) {
  struct stat found {};
  return ::lstat((run.folder + "/journal.jsonl").c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
         found.st_uid == ::geteuid();
}

Result<int> rerun(const std::vector<std::string>& arguments, const Environment& environment) {
  Command command("rerun", "Starts a run's command again, in its folder and with its variables.", environment);
  bool dry = false;
  command.with_run();
  command.app.add_flag("--dry-run", dry, "Prints what would be started");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  auto run = command.chosen(command.run);
  if (!run) return run.error();
  if (!run->has_record || run->record.command.empty()) {
    return usage_error(fmt::format("rerun: {} is of a release that did not keep its command", called(*run)));
  }
  const auto& record = run->record;
  auto words = record.command;
  words.front() = "taas-run";
  const auto changed = changed_variables(record, environment);
  if (command.as_json && dry) return print_document(RerunDocument{record.folder, words, by_name(changed)});
  if (command.as_json) words.insert(words.begin() + 1, "--json");
  const auto shown = type_for_shell(words);
  if (dry) {
    auto text = fmt::format("cd {}\n", type_for_shell(record.folder));
    for (const auto& one : changed)
      text +=
          fmt::format("export {}={}\n", one.substr(0, one.find('=')), type_for_shell(one.substr(one.find('=') + 1)));
    return print_now(text + shown + "\n") ? 0 : 1;
  }
  if (!is_ours(*run)) {
    return usage_error_with_fix(
        fmt::format("rerun: {} is {}'s", called(*run), record.user.empty() ? "somebody else" : printable(record.user)),
        "--dry-run shows what would be started");
  }
  std::error_code failed;
  fs::current_path(record.folder, failed);
  if (failed) return usage_error(fmt::format("rerun: {}: {}", record.folder, failed.message()));
  for (const auto& one : changed) {
    const auto equals = one.find('=');
    ::setenv(one.substr(0, equals).c_str(), one.substr(equals + 1).c_str(), 1);
  }
  std::fputs(fmt::format("taas-run: {} again: {}\n", called(*run), printable(shown)).c_str(), stderr);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(kThisProgram, argv.data());
  return system_error("taas-run cannot be started again", errno);
}

/// Names and values of what may differ, in order.
std::vector<std::pair<std::string, std::string>> facts_of(const RunSummary& run) {
  const auto& record = run.record;
  std::vector<std::pair<std::string, std::string>> facts{
      {"ended", run.state == "ended" ? run.ended : run.state},
      {"command", type_for_shell(record.command)},
      {"folder", record.folder},
      {"host", record.host},
      {"user", record.user},
      {"ranks", std::to_string(run.ranks)},
      {"nodes", std::to_string(record.nodes)},
      {"taas-run", record.versions.taas_run},
      {"python", record.versions.python},
      {"torch", record.versions.torch},
      {"cuda", record.versions.cuda},
      {"nccl", record.versions.nccl},
      {"commit", record.source.commit},
      {"branch", record.source.branch},
      {"changed files", run.changes < 0 ? std::string() : std::to_string(run.changes)},
  };
  return facts;
}

Result<int> diff(const std::vector<std::string>& arguments, const Environment& environment) {
  Command command("diff", "Shows what differs between two runs: command, environment, versions, commit, end.",
                  environment);
  std::string other;
  command.app.add_option("RUN", command.run, "Its number, its id or the beginning of it")->required();
  command.app.add_option("OTHER", other, "Likewise; without one the newest");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  auto first = command.chosen(command.run), second = command.chosen(other);
  if (!first) return first.error();
  if (!second) return second.error();
  std::vector<std::array<std::string, 3>> differing;
  const auto of_first = facts_of(*first), of_second = facts_of(*second);
  for (std::size_t i = 0; i < of_first.size(); ++i) {
    if (of_first[i].second != of_second[i].second)
      differing.push_back({of_first[i].first, of_first[i].second, of_second[i].second});
  }
  const auto before = by_name(first->record.environment), after = by_name(second->record.environment);
  std::map<std::string, std::array<std::string, 2>> variables;
  for (const auto& [name, value] : before) variables[name][0] = value;
  for (const auto& [name, value] : after) variables[name][1] = value;
  for (const auto& [name, values] : variables) {
    if (values[0] != values[1]) differing.push_back({"$" + name, values[0], values[1]});
  }
  if (command.as_json) {
    DiffDocument document{{first->id, second->id}, {}};
    for (const auto& [name, a, b] : differing) document.differences[name] = {a, b};
    return print_document(document);
  }
  const auto style = command.style();
  auto text =
      fmt::format("{} and {}{}\n", called(*first), called(*second), differing.empty() ? ": nothing differs" : "");
  for (const auto& [name, a, b] : differing) {
    text += style.paint(ui::Paint::kBold, printable(name)) + "\n";
    if (!a.empty()) text += style.paint(ui::Paint::kRed, "  - " + printable(a)) + "\n";
    if (!b.empty()) text += style.paint(ui::Paint::kGreen, "  + " + printable(b)) + "\n";
  }
  return print_now(text) ? 0 : 1;
}

/// "7d", "12h", "30m", "45s" in seconds.
std::optional<double> parse_age(const std::string& text) {
  double count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc{} || count < 0) return std::nullopt;
  if (unit == "d") return count * 86400;
  if (unit == "h") return count * 3600;
  if (unit == "m") return count * 60;
  if (unit == "s") return count;
  return std::nullopt;
}

struct Content {
  std::uintmax_t bytes = 0;
  bool has_files = false;  // that ranks wrote
};

Content content_of(const std::string& folder) {
  Content content;
  std::error_code failed;
  const auto output = folder + "/output/";
  for (fs::recursive_directory_iterator entry(folder, failed), end; !failed && entry != end; entry.increment(failed)) {
    std::error_code unknown;
    if (entry->is_symlink(unknown) || !entry->is_regular_file(unknown)) {
      content.has_files |= entry->is_symlink(unknown) && entry->path().string().starts_with(output);
      continue;
    }
    content.bytes += entry->file_size(unknown);
    content.has_files |= entry->path().string().starts_with(output);
  }
  return content;
}

/// Nothing is left of the folder, nor the number's link.
bool remove_run(const RunSummary& run) {
  const auto parent = HeldFolder::open(fs::path(run.folder).parent_path().string());
  const auto folder = parent ? parent->folder(run.id) : parent;
  if (!folder) return false;
  folder->remove_content();
  if (!parent->remove_folder(run.id)) return false;
  if (run.number > 0) parent->remove(fmt::format("{}/{}", storage::kNumbers, run.number));
  return true;
}

std::string cleaned_text(const CleanDocument& cleaned) {
  double bytes = 0;
  for (const auto& run : cleaned.removed) bytes += static_cast<double>(run.bytes);
  auto text = fmt::format("{} {}, {}", plural(static_cast<std::int64_t>(cleaned.removed.size()), "run"),
                          cleaned.dry_run ? "would be removed" : "removed", ui::byte_count(bytes));
  if (cleaned.with_files > 0)
    text += fmt::format("; {} with files that ranks wrote stay (--files)", cleaned.with_files);
  if (cleaned.unpublished > 0) {
    text += fmt::format("; {} with files that were not published stay", cleaned.unpublished);
  }
  return text + "\n";
}

Result<int> clean(const std::vector<std::string>& arguments, const Environment& environment) {
  Command command("clean",
                  "Removes runs that have ended. Never one that is under way, nor one whose ranks' files were not "
                  "published; those with files that ranks wrote only with --files.",
                  environment);
  std::size_t keep = 20;
  std::string older = "0s";
  bool dry = false, files = false;
  command.app.add_option("--keep", keep, "So many of the newest stay")->capture_default_str();
  command.app.add_option("--older", older, "Those alone that are older, such as 7d, 12h, 30m")->capture_default_str();
  command.app.add_flag("--files", files, "Also runs with files that ranks wrote (output/): checkpoints, too");
  command.app.add_flag("--dry-run", dry, "Says what would be removed");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  const auto age = parse_age(older);
  if (!age) return usage_error(fmt::format("clean: --older {}: not an age such as 7d, 12h, 30m or 45s", older));
  auto runs = command.all();
  if (!runs) return runs.error();
  CleanDocument done_now{dry, {}, {}, 0, 0};
  for (std::size_t i = keep; i < runs->size(); ++i) {
    const auto& run = (*runs)[i];
    std::error_code failed;
    const auto changed = fs::last_write_time(run.folder + "/journal.jsonl", failed);
    const bool old = !failed && fs::file_time_type::clock::now() - changed >= std::chrono::duration<double>(*age);
    if ((run.state != "ended" && run.state != "lost") || !old) continue;
    if (has_unpublished_files(run.folder)) {
      ++done_now.unpublished;
      continue;
    }
    const auto content = content_of(run.folder);
    if (content.has_files && !files) {
      ++done_now.with_files;
    } else if (dry || remove_run(run)) {
      done_now.removed.push_back({run.id, run.folder, content.bytes});
      if (dry && !command.as_json)
        print_now(fmt::format("{}: {}\n", called(run), ui::byte_count(static_cast<double>(content.bytes))));
    } else {
      done_now.failed.push_back(run.folder);
      std::fputs(fmt::format("taas-run: clean: {} could not be removed\n", printable(run.folder)).c_str(), stderr);
    }
  }
  return command.as_json ? print_document(done_now) : print_now(cleaned_text(done_now)) ? 0 : 1;
}

}  // namespace

RunsCommand find_runs_command(const std::string& name) {
  static const std::map<std::string, RunsCommand> kCommands{{"runs", list},     {"show", show},  {"logs", logs},
                                                            {"attach", attach}, {"stop", stop},  {"rerun", rerun},
                                                            {"diff", diff},     {"clean", clean}};
  const auto found = kCommands.find(name);
  return found == kCommands.end() ? nullptr : found->second;
}

}  // namespace taas::cli
