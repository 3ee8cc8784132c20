#include "launch/host_starter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/shell.hpp"
#include "base/text.hpp"
#include "proc/family/family.hpp"
#include "run/events/words.hpp"

namespace taas::launch {
namespace {

constexpr const char* kStepCommand = "srun";
constexpr auto kStepPatience = std::chrono::seconds(5);
constexpr int kNotFound = 127;
constexpr int kNotExecutable = 126;
constexpr int kSshFailed = 255;
constexpr const char* kConnectTimeout = "ConnectTimeout=8";  // seconds, so that a silent host is named within ten

/// ssh may warn before it says why it failed: the last line that is no warning counts.
std::string last_line(const std::vector<std::string>& lines) {
  auto found =
      std::find_if(lines.rbegin(), lines.rend(), [](const std::string& line) { return !line.starts_with("Warning:"); });
  return found == lines.rend() ? "it said nothing" : *found;
}

}  // namespace

HostStarter::HostStarter(boost::asio::io_context& io, Family& family, Options options,
                         std::function<void(int order, const std::string& message)> on_failed)
    : io_(io), family_(family), options_(std::move(options)), on_failed_(std::move(on_failed)) {}

void HostStarter::start_all() {
  for (const auto& host : options_.hosts) start(host);
}

void HostStarter::start(int order) {
  auto host = std::find_if(options_.hosts.begin(), options_.hosts.end(),
                           [order](const HostEntry& entry) { return entry.order == order; });
  if (host != options_.hosts.end()) start(*host);
}

bool HostStarter::busy() const {
  return std::any_of(commands_.begin(), commands_.end(), [](const auto& entry) { return entry.second->running(); });
}

void HostStarter::arrived(int order) { arrived_[order] = true; }

void HostStarter::start(const HostEntry& host) {
  auto bootstrap = options_.bootstrap;
  bootstrap.order = host.order;
  bootstrap.order_base = host.order_base;
  bootstrap.data = host.data;
  bootstrap.data_workers = host.data_workers;
  if (host.order >= 0) bootstrap.name = host.name;
  arrived_[host.order] = false;
  HostCommand::Options command{host.argv, options_.environment, node::print_bootstrap(bootstrap),
                               options_.open_files_limit, options_.spared};
  command.on_line = [this, host](const std::string& line) {
    if (auto text = explain_waiting(host, line); !text.empty()) tell_waiting(text);
  };
  auto started = HostCommand::start(
      io_, family_, std::move(command),
      [this, host](ExitStatus status, const std::vector<std::string>& last_lines) { ended(host, status, last_lines); });
  if (!started) return on_failed_(host.order, fmt::format("{}: {}", host.name, started.error().message));
  commands_[host.order] = std::move(*started);
  if (host.argv.front() == kStepCommand) watch_step(host);
}

/// Agents say their own order, which is not the step's: whoever has come, has come by a step.
void HostStarter::watch_step(const HostEntry& host) {
  auto late = [this, host] {
    bool come = std::any_of(arrived_.begin(), arrived_.end(), [](const auto& entry) { return entry.second; });
    if (!come && commands_[host.order]->running()) tell_waiting(explain_late_step(host));
  };
  auto& timer = steps_[host.order] = std::make_unique<Timer>(io_, std::move(late));
  timer->set(steady_now() + kStepPatience);
}

void HostStarter::tell_waiting(const std::string& text) {
  if (!std::exchange(waiting_told_, true)) options_.on_notice(text);
}

void HostStarter::ended(const HostEntry& host, ExitStatus status, const std::vector<std::string>& last_lines) {
  if (arrived_[host.order] || status.success()) return;
  on_failed_(host.order, explain_end(host, status, last_lines));
}

std::string explain_late_step(const HostEntry& host) {
  return fmt::format(
      "{}: srun has not started the step yet: it waits while the nodes are busy with another step of the job, and "
      "SLURM_OVERLAP=1 in the environment lets both run at once",
      host.name);
}

std::string explain_waiting(const HostEntry& host, const std::string& line) {
  bool waits = line.find("temporarily disabled") != line.npos;  // later it says "still disabled"
  if (host.argv.front() != kStepCommand || !waits || line.find("nodes are busy") == line.npos) return {};
  return fmt::format(
      "{}: its nodes are busy with another step, and srun waits until that ends; SLURM_OVERLAP=1 in the environment "
      "lets both run at once",
      host.name);
}

std::string explain_end(const HostEntry& host, ExitStatus status, const std::vector<std::string>& last_lines) {
  auto said = last_line(last_lines);
  if (status.signal != 0) {
    return fmt::format("{}: {} was killed by {}", host.name, host.argv.front(), run::signal_name(status.signal));
  }
  if (status.code == kNotFound || status.code == kNotExecutable) {
    return fmt::format("{}: taas-run cannot be run there ({}): install it there, or say where with --remote-taas-run",
                       host.name, said);
  }
  if (status.code == kSshFailed) return fmt::format("{}: {}", host.name, said);
  auto text = fmt::format("{}: the agent ended with code {}: {}", host.name, status.code, said);
  return said.starts_with("srun:") ? text + "; --standalone trains on this machine alone" : text;
}

std::vector<std::string> ssh_command(const std::string& ssh, const std::string& host, const std::string& taas_run) {
  std::vector<std::string> command;
  for (auto word : split(ssh, ' ')) {
    if (!word.empty()) command.emplace_back(word);
  }
  auto agent = fmt::format("exec {} --as-agent", quote_for_shell(taas_run));
  for (const auto* word : {"-T", "-o", "BatchMode=yes", "-o", kConnectTimeout, "--"}) command.emplace_back(word);
  command.push_back(host);
  command.push_back(std::move(agent));
  return command;
}

std::vector<std::string> step_command(int nodes, const std::string& taas_run) {
  return {kStepCommand,
          fmt::format("--nodes={}", nodes),
          fmt::format("--ntasks={}", nodes),
          "--ntasks-per-node=1",
          "--cpu-bind=none",
          "--mem=0",
          "--kill-on-bad-exit=0",
          "--no-kill",  // a node that SLURM declares down leaves the others: the run decides whether it goes on
          "--",
          taas_run,
          "--as-agent"};
}

std::vector<std::string> step_command(int nodes, const std::string& taas_run, int group) {
  auto command = step_command(nodes, taas_run);
  command.insert(command.begin() + 1, fmt::format("--het-group={}", group));
  return command;
}

}  // namespace taas::launch
