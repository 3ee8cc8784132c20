#include "session/session_commands.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <climits>
#include <future>
#include <optional>
#include <utility>
#include <variant>

#include "base/bytes.hpp"
#include "base/files.hpp"
#include "base/ids.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "command/command.hpp"
#include "flags/values.hpp"
#include "launch/host_starter.hpp"
#include "node/process/private_folder.hpp"
#include "node/process/runtime_folder.hpp"
#include "node/ranks/rank_starts.hpp"
#include "parse/cli.hpp"
#include "plan/decide_launch_mode.hpp"
#include "plan/launch_mode/host_list.hpp"
#include "plan/launch_plan.hpp"
#include "plan/program/preload.hpp"
#include "proc/spawn/command_output.hpp"
#include "proc/spawn/message_socket.hpp"
#include "proc/spawn/null_device.hpp"
#include "session/session.hpp"
#include "session/session_link.hpp"
#include "start/local_programs.hpp"
#include "start/refusal.hpp"
#include "ui/text/quantities.hpp"

namespace taas::cli {
namespace {

constexpr const char* kDefaultName = "default";
constexpr std::chrono::milliseconds kIdleLimit = std::chrono::minutes(30);
constexpr std::chrono::milliseconds kImportPatience = std::chrono::minutes(10);
constexpr std::chrono::milliseconds kSshPatience = std::chrono::seconds(5);  // for a word to its own process

struct UpOptions {
  std::chrono::milliseconds idle = kIdleLimit;
  bool json = false;
  bool help = false;
  std::vector<std::string> of_runs;  // the other words
};

constexpr const char* kUpHelp =
    "Keeps a Python that has imported torch, so that runs start from it: taas-run --in NAME train.py\n"
    "Usage: taas-run up [OPTIONS]\n\n"
    "Options:\n"
    "  -h,--help                   Print this help message and exit\n"
    "  --json                      JSON, for programs\n"
    "  --name NAME                 What it is called (default: default)\n"
    "  --idle SECONDS              It ends itself after so long without a run; 0: never (default: 1800)\n"
    "  --hosts A,B                 One on each of these machines, over ssh; runs with --in and --hosts use them\n"
    "  --end-with PID              It ends with this process\n"
    "  --gpus N, --nproc-per-node N, --preload MODULES\n"
    "                              As for a run: what its runs have that do not say it themselves\n";

/// Those of a run are read like a run's.
Result<UpOptions> read_up(const std::vector<std::string>& arguments) {
  UpOptions up;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto& word = arguments[i];
    if (word == "--json") up.json = true;
    if (word == "-h" || word == "--help") up.help = true;
    if (word == "--json" || word == "-h" || word == "--help") continue;
    const bool apart = word == "--idle";
    if (!apart && !word.starts_with("--idle=")) {
      up.of_runs.push_back(word);
      continue;
    }
    if (apart && i + 1 == arguments.size()) return usage_error("up: --idle: seconds are missing");
    const auto text = apart ? arguments[++i] : word.substr(std::string_view("--idle=").size());
    const auto idle = read_seconds(text);
    if (!idle) return Error(idle.error()).with("up: --idle " + text);
    up.idle = *idle;
  }
  return up;
}

/// The options of its runs.
Result<plan::Options> read_wishes(const std::vector<std::string>& words, const Environment& environment,
                                  const std::string& stand_in) {
  auto all = words;
  all.insert(all.end(), {"--run-path", stand_in});
  auto parsed = parse(all, environment, read_file);
  if (!parsed) return parsed.error();
  auto* options = std::get_if<plan::Options>(&*parsed);
  const bool one_program = options != nullptr && options->program.program == stand_in;
  if (!one_program) return usage_error("up: it is for no program in particular: taas-run --in NAME PROGRAM starts one");
  if (options->program.preload == plan::kPreloadNone) return usage_error("up: --preload none: nothing would be kept");
  if (options->output.name.empty()) options->output.name = kDefaultName;
  return std::move(*options);
}

/// What the interpreter of a run with these options would be made of.
Result<PreloadRequest> interpreter_for(const plan::Options& options, const plan::Machine& machine) {
  if (machine.preload_hook.empty()) return unavailable_error("up: the files of taas-run for it are not beside it");
  auto plan = plan::make_plan(options, machine, make_run_id());
  if (!plan) return plan.error();
  if (!std::holds_alternative<plan::OneMachine>(plan->launch_mode)) {
    return usage_error("up: a session has its ranks on this machine, or one on each of --hosts");
  }
  auto python = LocalPrograms(machine.environment).find_python();
  if (!python) return python.error();
  PreloadRequest request;
  request.command = {*python, "-u", options.program.program};
  request.options = 2;
  node::RankStartsOptions starts_of;
  starts_of.settings = plan::launch_settings(*plan, machine, "");
  starts_of.machine = machine;
  starts_of.command = request.command;
  node::RankStarts starts(std::move(starts_of));
  starts.begin(Generation{0}, {}, plan->ranks);
  auto common = starts.common();
  request.environment = std::move(common.variables);
  request.per_rank = std::move(common.per_rank);
  request.modules = plan::preload_modules(options.program.preload);
  request.hook_folder = machine.preload_hook;
  return request;
}

/// Its process has no terminal, and nothing of whoever has started it but these two descriptors: somebody may wait for
/// the end of a pipe.
void leave_everything(int one, int other) {
  ::setsid();
  const auto [low, high] = std::minmax(one, other);
  for (const auto& [first, last] :
       {std::pair{3, low - 1}, std::pair{low + 1, high - 1}, std::pair{high + 1, INT_MAX}}) {
    if (first <= last) ::syscall(SYS_close_range, first, last, 0);
  }
  if (::chdir("/") != 0) ::_exit(kFailedExitCode);
  if (auto null = open_null()) {
    for (int stream = 0; stream < 3; ++stream) ::dup2(null->get(), stream);
  }
}

std::string describe_size(const SessionState& state) {
  return fmt::format("{} in {}", fmt::join(state.modules, ", "), size_in_words(state.memory_bytes));
}

std::string idle_words(const SessionState& state) {
  if (state.idle_limit.count() == 0) return "it stays until taas-run down";
  return fmt::format("it ends after {} without a run, or by taas-run down", ui::duration_in_words(state.idle_limit));
}

int report_up(const SessionState& state, bool as_json) {
  if (as_json) return print_document(SessionsDocument{{state}});
  print_now(fmt::format("taas-run: session {} is ready: {}; {}\ntaas-run --in {} train.py\n", state.name,
                        describe_size(state), idle_words(state), state.name));
  return 0;
}

/// In the process that was asked: waits for the other's word.
Result<int> await_session(const Fd& word, const std::string& name, bool as_json) {
  auto text = receive_message(word, kImportPatience);
  const auto json = text && !text->empty() ? parse_json(*text) : protocol_error("it ended at once");
  const auto says = json ? from_json<SessionSays>(*json) : Result<SessionSays>(json.error());
  if (!says) return unavailable_error(fmt::format("session {}: {}", name, says.error().message));
  if (says->state.state == "ready") return report_up(says->state, as_json);
  return unavailable_error(fmt::format("session {}: {}", name, says->state.why));
}

/// In the session's.
int say_refused(const Fd& word, const std::string& why) {
  SessionSays says{"here"};
  says.state.why = why;
  (void)send_message(word, boost::json::serialize(to_json(says)), {}, std::chrono::milliseconds(0));
  return kFailedExitCode;
}

/// Held as long as the session is there. None: one of this name is.
Result<std::optional<Fd>> take_name(const std::string& name, const Environment& environment) {
  auto folder = node::runtime_folder({});
  if (!folder) folder = node::runtime_folder(environment);
  if (!folder) return folder.error();
  auto lock = node::open_lock(fmt::format("{}/session-{}.lock", *folder, name));
  if (!lock) return lock.error();
  if (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) return std::optional<Fd>();
  return std::optional(std::move(*lock));
}

Result<int> report_existing(const std::string& name, const UpOptions& up, const Environment& environment) {
  auto found = find_session(name, environment);
  if (!found) return unavailable_error(fmt::format("session {}: it is being made, or about to end", name));
  if (found->state.flags == up.of_runs) return report_up(found->state, up.json);
  return usage_error_with_fix(
      fmt::format("session {} is there already, with other options ({})", name,
                  found->state.flags.empty() ? "none" : fmt::format("{}", fmt::join(found->state.flags, " "))),
      fmt::format("taas-run down {}, or another --name", name));
}

/// What each of them says is said; the worst exit code.
int ask_hosts(const std::vector<plan::Host>& hosts, const plan::NodesOptions& nodes,
              const std::vector<std::vector<std::string>>& words) {
  std::vector<std::future<Result<CommandEnd>>> asked;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    auto command = launch::ssh_command(nodes.ssh_command, destination(hosts[i]),
                                       nodes.remote_taas_run.value_or(called_path()), words[i]);
    asked.push_back(std::async(std::launch::async, [command = std::move(command)] {
      const auto nothing = open_null();
      return run_command(command, kImportPatience, Complaints::kShown, nothing ? &*nothing : nullptr);
    }));
  }
  int worst = 0;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    const auto end = asked[i].get();
    if (!end) tell(Error(end.error()).with(hosts[i].name), ErrorForm::kText);
    const auto said = end ? end->output.substr(0, end->output.find('\n')) : std::string();
    if (!said.empty()) print_now(fmt::format("{}: {}\n", hosts[i].name, said));
    worst = std::max(worst, end ? end->exit_code : kFailedExitCode);
  }
  return worst;
}

/// A session of this name on each, with as many ranks as a run would have there.
Result<int> up_on_hosts(const plan::OverSsh& mode, const plan::Options& options, const UpOptions& up,
                        const plan::Machine& machine) {
  const auto plan = plan::make_plan(options, machine, make_run_id());
  if (!plan) return plan.error();
  std::vector<std::vector<std::string>> words;
  for (std::size_t i = 0; i < mode.hosts.size(); ++i) {
    const auto& node = plan->nodes[std::min(i, plan->nodes.size() - 1)];  // the rest are spares
    words.push_back({"up", "--name", options.output.name, "--nproc-per-node", std::to_string(node.local_world_size),
                     "--preload", options.program.preload, "--idle",
                     fmt::format("{}", std::chrono::duration<double>(up.idle).count())});
  }
  auto nodes = options.nodes;
  nodes.ssh_command = launch::share_connection(nodes.ssh_command, std::chrono::ceil<std::chrono::seconds>(up.idle));
  const int worst = ask_hosts(mode.hosts, nodes, words);
  if (worst == 0) print_now(fmt::format("taas-run --in {} --hosts … train.py\n", options.output.name));
  return worst;
}

/// And the connections that runs of them have shared.
int down_on_hosts(const std::vector<plan::Host>& hosts, plan::NodesOptions nodes, const std::string& name) {
  const auto ssh = std::exchange(nodes.ssh_command, launch::share_connection(nodes.ssh_command));
  const int worst = ask_hosts(hosts, nodes, std::vector<std::vector<std::string>>(hosts.size(), {"down", name}));
  for (const auto& host : hosts) {
    const auto command = launch::end_connection(ssh, destination(host));
    if (!command.empty()) (void)run_command(command, kSshPatience, Complaints::kDropped);
  }
  return worst;
}

}  // namespace

Result<int> up(const std::vector<std::string>& arguments, const plan::Machine& machine) {
  auto wanted = read_up(arguments);
  if (!wanted) return wanted.error();
  if (wanted->help) return print_now(kUpHelp) ? 0 : kFailedExitCode;
  const auto stand_in = machine.preload_hook + "/program-of-a-run";
  auto options = read_wishes(wanted->of_runs, machine.environment, stand_in);
  if (!options) return options.error();
  const auto name = options->output.name;
  auto mode = plan::decide_launch_mode(*options, machine);
  if (!mode) return mode.error();
  if (const auto* hosts = std::get_if<plan::OverSsh>(&*mode)) return up_on_hosts(*hosts, *options, *wanted, machine);
  auto python = interpreter_for(*options, machine);
  if (!python) return python.error();
  auto lock = take_name(name, machine.environment);
  if (!lock) return lock.error();
  if (!*lock) return report_existing(name, *wanted, machine.environment);
  auto word = make_message_sockets();
  if (!word) return word.error();
  const auto child = ::fork();
  if (child < 0) return system_error("cannot start the session", errno);
  if (child == 0) {
    leave_everything(word->second.get(), (*lock)->get());
    auto folder = node::PrivateFolder::make(machine.environment);
    if (!folder) ::_exit(say_refused(word->second, folder.error().message));
    SessionOptions session{{name, options->size, options->program.preload},
                           wanted->of_runs,
                           std::move(*python),
                           options->supervision.end_with,
                           wanted->idle};
    ::_exit(serve_session(std::move(session), std::move(*folder), std::move(word->second)));
  }
  word->second.reset();
  return await_session(word->first, name, wanted->json);
}

Result<int> down(const std::vector<std::string>& arguments, const Environment& environment) {
  std::string name, hosts;
  plan::NodesOptions nodes;
  Subcommand command("down", "Ends a session; runs that came from it go on to their end.");
  command.app.add_option("NAME", name, "Its name (default: all of yours on this machine)");
  command.app.add_option("--hosts", hosts, "Those on these machines, over ssh, as in a,b");
  command.app.add_option("--ssh", nodes.ssh_command, "The command line that reaches them (default: ssh)");
  command.app.add_option("--remote-taas-run", nodes.remote_taas_run, "Where taas-run is there");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  if (!hosts.empty()) {
    auto read = plan::parse_hosts(hosts);
    if (!read) return read.error();
    return down_on_hosts(*read, nodes, name);
  }
  auto found = find_sessions(environment);
  if (!found) return found.error();
  DownDocument document;
  for (const auto& session : *found) {
    if (!name.empty() && session.state.name != name) continue;
    if (tell(session.socket, {"down"})) document.ended.push_back(session.state.name);
  }
  if (document.ended.empty() && !name.empty()) {
    auto missing = find_session(name, environment);
    if (!missing) return missing.error();
  }
  if (command.as_json) return print_document(document);
  for (const auto& ended : document.ended) print_now(fmt::format("taas-run: session {} has been ended\n", ended));
  return 0;
}

Result<int> sessions(const std::vector<std::string>& arguments, const Environment& environment) {
  Subcommand command("sessions", "Lists the sessions that taas-run up has made on this machine.");
  auto done = command.parse(arguments);
  if (!done || *done) return done ? Result<int>(**done) : done.error();
  auto found = find_sessions(environment);
  if (!found) return found.error();
  SessionsDocument document;
  for (auto& session : *found) document.sessions.push_back(std::move(session.state));
  if (command.as_json) return print_document(document);
  std::string page = document.sessions.empty() ? "no session; taas-run up makes one\n" : "";
  for (const auto& state : document.sessions) {
    const auto doing = state.runs > 0           ? plural(state.runs, "run")
                       : state.state == "ready" ? fmt::format("idle for {}", ui::duration_in_words(state.idle))
                                                : state.state;
    page += fmt::format("{}  {}; {}{}\n", state.name, describe_size(state), doing,
                        state.why.empty() ? "" : ": " + state.why);
  }
  return print_now(page) ? 0 : kFailedExitCode;
}

}  // namespace taas::cli
