#include "proc/family/family.hpp"

#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cerrno>
#include <map>
#include <optional>

#include "proc/spawn/child_descriptors.hpp"

namespace taas {
namespace {

/// The list of all processes is read at most this often during a sweep, and less often in a long one; ends are noticed
/// at once by SIGCHLD.
constexpr std::chrono::milliseconds kLookAgain{10};
constexpr std::chrono::milliseconds kLookAtLeast{160};

struct Sweep {
  int signal = 0;
  std::function<void()> on_gone;
  std::chrono::milliseconds pause = kLookAgain;
};

}  // namespace

struct Family::State : std::enable_shared_from_this<Family::State> {
  explicit State(boost::asio::io_context& loop) : io(loop), ended(loop, SIGCHLD), timer(loop) {}

  void wait_for_ends() {
    ended.async_wait([self = shared_from_this()](boost::system::error_code stopped, int) {
      if (stopped || self->closed) return;
      self->wait_for_ends();
      self->look();
    });
  }

  /// Reaps what nobody watches, and ends the sweep when nothing is left.
  void look() {
    if (closed) return;
    reap_orphans();
    if (!sweep || !nobody_left()) return;
    auto on_gone = std::move(sweep->on_gone);
    sweep.reset();
    told.clear();
    timer.cancel();
    if (on_gone) on_gone();
  }

  /// Looks at who has ended before reaping, since a watched child is its watch's to reap: then the rest waits for that.
  void reap_orphans() {
    for (;;) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | __WALL) < 0) return;
      if (info.si_pid == 0 || watched.contains(info.si_pid) || spared.contains(info.si_pid)) return;
      ::waitpid(info.si_pid, nullptr, WNOHANG | __WALL);
    }
  }

  bool nobody_left() const {
    if (has_no_children()) return true;
    bool all_told = std::all_of(watched.begin(), watched.end(), [&](auto& one) { return spared.contains(one.first); });
    return !spared.empty() && all_told && descendants(spared).empty();
  }

  void signal_members() {
    if (sweep->signal == SIGKILL) return kill_descendants(spared);
    auto look = [signal = sweep->signal](const Process& process) {
      return read_disposition(process.pid, signal).value_or(Disposition{});
    };
    std::vector<Process> fresh;
    for (const auto& process : choose_recipients(descendants(spared), Audience::kAll, look)) {
      if (told.insert(process).second) fresh.push_back(process);
    }
    tell_processes(fresh, sweep->signal);
  }

  void continue_sweep() {
    if (closed) return;
    look();
    if (!sweep || sweep->signal == 0) return;
    signal_members();
    timer.expires_after(sweep->pause);
    if (sweep->signal != SIGKILL) sweep->pause = std::min(2 * sweep->pause, kLookAtLeast);
    timer.async_wait([self = shared_from_this()](boost::system::error_code cancelled) {
      if (!cancelled) self->continue_sweep();
    });
  }

  boost::asio::io_context& io;
  boost::asio::signal_set ended;
  boost::asio::steady_timer timer;
  std::map<int, ExitWatch> watched;
  std::set<int> spared;
  std::set<Process> told;  // to end, until the sweep that follows is over
  std::optional<Sweep> sweep;
  bool closed = false;
};

Family::Family(boost::asio::io_context& io) : state_(std::make_shared<State>(io)) {
  become_subreaper();
  reserve_child_descriptors();
  state_->wait_for_ends();
}

Family::~Family() {
  state_->closed = true;
  state_->watched.clear();
  boost::system::error_code ignored;
  state_->ended.cancel(ignored);
  state_->timer.cancel();
}

void Family::watch(Child child, ExitCallback on_exit) {
  int pid = child.pid;
  auto told = [state = state_.get(), pid, on_exit = std::move(on_exit)](ExitStatus status, Instant at) {
    auto self = state->shared_from_this();  // the callback may destroy the family
    self->watched.erase(pid);
    on_exit(status, at);
    self->look();
  };
  state_->watched.emplace(pid, ExitWatch(state_->io, std::move(child), std::move(told)));
}

void Family::signal_group(int pid, int signal) {
  auto found = state_->watched.find(pid);
  if (found != state_->watched.end()) found->second.signal_group(signal);
}

std::vector<int> Family::tell(const std::vector<int>& leaders, int signal, Audience audience,
                              const std::function<void()>& before) {
  GroupCall call(signal, audience);
  if (before) {
    call.see(members());
    before();
  }
  for (int pid : leaders) {
    if (state_->watched.contains(pid)) call.tell_leader(pid);
  }
  call.tell_groups();
  if (audience == Audience::kAll) state_->told.insert(call.told().begin(), call.told().end());
  return call.unheard();
}

void Family::all_are_told() {
  auto members = descendants(state_->spared);
  state_->told.insert(members.begin(), members.end());
}

void Family::spare(int pid) { state_->spared.insert(pid); }
void Family::unspare(int pid) { state_->spared.erase(pid); }

void Family::sweep(int signal, std::function<void()> on_gone) {
  state_->sweep = Sweep{signal, std::move(on_gone)};
  boost::asio::post(state_->io, [state = state_] {
    if (state->sweep) state->continue_sweep();
  });
}

std::vector<Process> Family::members() const { return descendants(state_->spared); }

}  // namespace taas
