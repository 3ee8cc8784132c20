#include "session/session.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <csignal>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/json/json.hpp"
#include "base/text.hpp"
#include "base/timer.hpp"
#include "base/unix_address.hpp"
#include "proc/family/family.hpp"
#include "proc/spawn/message_socket.hpp"
#include "proc/spawn/process_end.hpp"
#include "proc/spawn/signals.hpp"
#include "session/session_link.hpp"

namespace taas::cli {
namespace {

namespace asio = boost::asio;

constexpr int kWaitingClients = 64;
constexpr std::size_t kMostClients = 256;
constexpr std::size_t kDescriptorsOfRun = 4;  // the order, and three streams
constexpr std::chrono::milliseconds kNow{0};

/// What a process and its descendants share with others counts in part: "Pss:  1234 kB" of smaps_rollup.
std::int64_t memory_of(int pid) {
  const auto text = read_file(fmt::format("/proc/{}/smaps_rollup", pid));
  if (!text) return 0;
  for (auto line : split(*text, '\n')) {
    if (!line.starts_with("Pss:")) continue;
    return std::atoll(std::string(trim(line.substr(4))).c_str()) * 1024;
  }
  return 0;
}

/// A command that is connected.
struct Client {
  Client(asio::io_context& io, Fd connected) : socket(std::move(connected)), watched(io, ::dup(socket.get())) {}

  Fd socket;
  asio::posix::stream_descriptor watched;  // a duplicate
  std::optional<SessionOrder> order;       // it has wanted a launcher, which is not there yet
  std::vector<Fd> streams;
  int launcher = 0;  // its process
  bool gone = false;
};

class Session {
 public:
  Session(SessionOptions options, node::PrivateFolder folder, Fd told)
      : options_(std::move(options)),
        folder_(std::move(folder)),
        told_(std::move(told)),
        family_(io_),
        idle_(io_, [this] { end(); }),
        signals_(io_, {SIGTERM, SIGINT}, [this](int signal, Instant, int) { stop(signal); }) {}

  Result<> listen() {
    const auto path = folder_.path() + "/" + kSessionSocket;
    const auto address = unix_address(path);
    if (!address) return address.error();
    listener_ = Fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    const bool listens = listener_ &&
                         ::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0 &&
                         ::listen(listener_.get(), kWaitingClients) == 0;
    if (!listens) return system_error("cannot listen at " + path, errno);
    auto refusals = make_message_sockets();
    if (!refusals) return refusals.error();
    refusals_ = std::move(refusals->first);
    for_refusals_ = std::move(refusals->second);
    if (options_.end_with != 0) {
      auto watched = on_process_end(io_, options_.end_with, [this] { stop(SIGTERM); });
      if (!watched) return watched;
    }
    await(listener_, listening_, [this] { accept(); });
    await(refusals_, refused_, [this] { hear_refusal(); });
    return {};
  }

  int serve() {
    make_interpreter();
    while (!over_) io_.run_one();
    return 0;
  }

 private:
  using Watched = std::optional<asio::posix::stream_descriptor>;

  /// Again and again.
  template <class Then>
  void await(const Fd& descriptor, Watched& watched, Then then) {
    if (!watched) watched.emplace(io_, ::dup(descriptor.get()));
    watched->async_wait(asio::posix::stream_descriptor::wait_read,
                        [this, &descriptor, &watched, then](boost::system::error_code stopped) {
                          if (stopped) return;
                          then();
                          await(descriptor, watched, then);
                        });
  }

  void make_interpreter() {
    state_ = "importing";
    why_.clear();
    options_.python.refusals = &for_refusals_;
    auto made = PreloadedPython::start(io_, family_, options_.python, [this](const std::string& why) { settle(why); });
    if (!made) return settle(made.error().message);
    interpreter_ = std::move(*made);
  }

  void settle(const std::string& why) {
    state_ = why.empty() ? "ready" : "refused";
    why_ = why;
    if (told_) {  // the first time
      (void)send_message(told_, boost::json::serialize(to_json(describe_session())), {}, kNow);
      told_.reset();
      if (!why.empty()) return end();
    }
    rest();
    if (why.empty()) {
      good_ = options_.python;
    } else if (good_) {  // what a run has wanted is of no use to it either
      options_.python = *std::exchange(good_, std::nullopt);
      return make_interpreter();
    }
    start_next();
  }

  void accept() {
    Fd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!socket || !is_same_user(socket.get()) || clients_.size() >= kMostClients) return;
    clients_.push_back(std::make_shared<Client>(io_, std::move(socket)));
    listen_to(clients_.back());
  }

  void listen_to(const std::shared_ptr<Client>& client) {
    client->watched.async_wait(asio::posix::stream_descriptor::wait_read,
                               [this, client](boost::system::error_code stopped) {
                                 if (stopped || client->gone) return;
                                 obey(client) ? listen_to(client) : forget(client);
                               });
  }

  /// False: it has left, or says what no command says.
  bool obey(const std::shared_ptr<Client>& client) {
    auto message = receive_with_descriptors(client->socket, kNow);
    if (!message || message->text.empty()) return false;
    const auto json = parse_json(message->text);
    const auto asks = json ? from_json<SessionAsks>(*json) : Result<SessionAsks>(json.error());
    if (!asks) return false;
    if (asks->ask == "who") return say(*client, describe_session());
    if (asks->ask == "down") return end(), true;
    if (asks->ask == "signal") return pass_on(*client, asks->signal), true;
    return asks->ask == "run" && take_order(client, std::move(message->descriptors));
  }

  static bool say(const Client& client, const SessionSays& what) {
    return static_cast<bool>(send_message(client.socket, boost::json::serialize(to_json(what)), {}, kNow));
  }

  void forget(const std::shared_ptr<Client>& client) {
    client->gone = true;
    client->watched.close();
    if (client->launcher > 0) ::kill(client->launcher, SIGKILL);  // not reaped yet: still its number
    std::erase(waiting_, client);
    std::erase(clients_, client);
  }

  static void pass_on(const Client& client, int signal) {
    if (client.launcher > 0) ::kill(client.launcher, signal);
  }

  bool take_order(const std::shared_ptr<Client>& client, std::vector<Fd> descriptors) {
    if (descriptors.size() != kDescriptorsOfRun || client->order || client->launcher != 0) return false;
    auto order = SessionOrder::read(descriptors.front());
    if (!order) return false;
    order->environment.insert(order->environment.end() - 1, wishes_variable(options_.wishes));
    client->order = std::move(*order);
    descriptors.erase(descriptors.begin());
    client->streams = std::move(descriptors);
    waiting_.push_back(client);
    idle_.clear();
    if (state_ == "importing") {
      say(*client, {"waiting", fmt::format("importing {}", fmt::join(options_.python.modules, ", "))});
    }
    start_next();
    return true;
  }

  /// One after the other: the interpreter is asked for one at a time.
  void start_next() {
    if (waiting_.empty() || starting_ || state_ == "importing") return;
    auto client = std::move(waiting_.front());
    waiting_.pop_front();
    if (over_soon_) return refuse(*client, "it is about to end"), start_next();
    if (state_ == "refused") {  // it may be better next time
      refuse(*client, why_);
      return make_interpreter();
    }
    if (!interpreter_->usable()) {
      waiting_.push_front(std::move(client));
      return make_interpreter();
    }
    starting_ = true;
    SpawnRequest request;
    request.argv = client->order->arguments;
    request.environment = client->order->environment;
    request.working_directory = client->order->folder;
    request.standard_input = &client->streams[0];
    request.standard_output = &client->streams[1];
    request.standard_error = &client->streams[2];
    interpreter_->spawn(
        {std::move(request)}, [this, client](std::size_t, Result<Child> child) { take(client, std::move(child)); },
        [this, client](const Result<>& how) {
          starting_ = false;
          if (!how) refuse(*client, how.error().message);
          asio::post(io_, [this] { start_next(); });
        });
  }

  static void refuse(Client& client, const std::string& why) {
    client.order.reset();
    client.streams.clear();
    say(client, {"refused", why + "; this run starts without it"});
  }

  void take(const std::shared_ptr<Client>& client, Result<Child> child) {
    if (!child) return refuse(*client, child.error().message);
    client->launcher = child->pid;
    client->order.reset();
    client->streams.clear();
    ++runs_;
    idle_.clear();
    family_.watch(std::move(*child), [this, client](ExitStatus status, Instant) { ended(client, status); });
    if (client->gone) ::kill(client->launcher, SIGKILL);
  }

  void ended(const std::shared_ptr<Client>& client, ExitStatus status) {
    client->launcher = 0;
    --runs_;
    if (!client->gone) {
      SessionSays says{"ended"};
      says.code = status.signal != 0 ? kSignalExitCode + status.signal : status.code;
      say(*client, says);
    }
    rest();
  }

  /// What a run wanted is what the next will want.
  void hear_refusal() {
    auto message = receive_with_descriptors(refusals_, kNow);
    if (!message || message->descriptors.size() != 1) return;
    auto wanted = read_refused(message->descriptors.front());
    if (!wanted || starting_) return;
    const auto options = static_cast<std::ptrdiff_t>(wanted->options);
    auto& python = options_.python;
    const auto stand_in = python.command.back();
    python.command.assign(wanted->command.begin(), wanted->command.begin() + options);
    python.command.push_back(stand_in);
    python.options = wanted->options;
    python.environment = std::move(wanted->environment);
    python.per_rank = std::move(wanted->per_rank);
    for (auto& module : wanted->modules) {
      if (std::ranges::find(python.modules, module) == python.modules.end())
        python.modules.push_back(std::move(module));
    }
    interpreter_.reset();
    make_interpreter();
  }

  void rest() {
    since_ = steady_now();
    ::malloc_trim(0);
    if (runs_ == 0 && over_soon_) over_ = true;
    if (runs_ == 0 && options_.idle_limit.count() > 0) idle_.set(since_ + options_.idle_limit);
  }

  void end() {
    over_soon_ = true;
    listener_.reset();
    listening_.reset();
    interpreter_.reset();
    state_ = "ending";
    while (!waiting_.empty()) {
      refuse(*waiting_.front(), "it is about to end");
      waiting_.pop_front();
    }
    if (runs_ == 0) over_ = true;
  }

  void stop(int signal) {
    for (const auto& client : clients_) pass_on(*client, signal);
    end();
  }

  SessionSays describe_session() const {
    SessionSays says{"here"};
    auto& state = says.state;
    state.name = options_.wishes.name;
    state.pid = ::getpid();
    state.state = state_;
    state.why = why_;
    state.flags = options_.flags;
    state.python = options_.python.command.front();
    state.modules = options_.python.modules;
    state.memory_bytes =
        memory_of(::getpid()) + (interpreter_ && interpreter_->pid() > 0 ? memory_of(interpreter_->pid()) : 0);
    state.runs = runs_;
    if (runs_ == 0) state.idle = steady_now() - since_;
    state.idle_limit = options_.idle_limit;
    says.build = build_;
    return says;
  }

  SessionOptions options_;
  node::PrivateFolder folder_;
  Fd told_;  // whoever has started this
  std::string build_ = build_of_this();
  asio::io_context io_{1};
  Family family_;
  Timer idle_;
  SignalSource signals_;
  Fd listener_;
  Watched listening_;
  Fd refusals_;      // what did not fit is told here
  Fd for_refusals_;  // its other end
  Watched refused_;
  std::unique_ptr<PreloadedPython> interpreter_;
  std::optional<PreloadRequest> good_;  // what the last one that was ready was made of
  std::string state_;
  std::string why_;
  std::list<std::shared_ptr<Client>> clients_;
  std::deque<std::shared_ptr<Client>> waiting_;  // for a launcher
  bool starting_ = false;
  int runs_ = 0;
  Instant since_ = steady_now();  // when it last had something to do
  bool over_soon_ = false;
  bool over_ = false;
};

}  // namespace

int serve_session(SessionOptions options, node::PrivateFolder folder, Fd told) {
  Session session(std::move(options), std::move(folder), std::move(told));
  if (!session.listen()) return kFailedExitCode;
  return session.serve();
}

}  // namespace taas::cli
