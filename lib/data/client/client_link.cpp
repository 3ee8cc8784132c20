#include "data/client/client_link.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "base/quiet_thread.hpp"
#include "data/client/client_session.hpp"
#include "data/client/client_state.hpp"
#include "data/transport/sockets.hpp"

namespace taas::data {

namespace {

using namespace std::chrono_literals;

constexpr Duration kConnectPatience = 5s;
constexpr Duration kFirstPause = 50ms;
constexpr Duration kLongestPause = 2s;

/// The link goes on with another connection; the program with what memory it has.
Result<> run_guarded(ClientSession& session) {
  try {
    return session.run();
  } catch (const std::bad_alloc&) {
    return system_error("no memory for what it sent", ENOMEM);
  }
}

}  // namespace

ClientLink::ClientLink(Client::State& client, WorkerIndex worker, WorkerAddress address)
    : client_(client), worker_(worker), address_(std::move(address)) {}

ClientLink::~ClientLink() { stop(); }

void ClientLink::start() {
  if (has_left()) return;
  auto begun = begin_quietly(thread_, [this] { run(); });
  if (!begun) refusal_ = begun.error().message;
}

void ClientLink::stop() {
  stopping_ = true;
  wakeup_->wake();
  if (thread_.joinable()) thread_.join();
}

void ClientLink::post(LinkOrder order) {
  const bool was_told = !orders_.empty();
  orders_.push_back(std::move(order));
  if (!was_told && std::this_thread::get_id() != thread_.get_id()) wakeup_->wake();
}

void ClientLink::come_up() {
  up_ = true;
  refusals_ = 0;
  refusal_.clear();
}

bool ClientLink::go_down() {
  orders_.clear();
  return std::exchange(up_, false);
}

/// A worker that is not there yet may come. One that cannot prove the secret is none of this run's, unless just one
/// handshake was disturbed.
bool ClientLink::refuse(const Error& why) {
  constexpr int kForGood = 3;
  refusals_ = why.code == ErrorCode::kProtocol ? refusals_ + 1 : 0;
  refusal_ = refusals_ >= kForGood ? why.message : std::string();
  return refusals_ == kForGood;
}

void ClientLink::run() {
  Duration pause = kFirstPause;
  while (!stopping_) {
    auto transport = connect();
    if (transport) {
      if (serve(std::move(*transport))) pause = kFirstPause;
    } else if (!stopping_) {
      client_.refused(worker_, transport.error());
    }
    const auto until = steady_now() + pause;
    while (!stopping_ && steady_now() < until) {
      wakeup_->clear();
      if (!stopping_) wait_for_wake(*wakeup_, until - steady_now());
    }
    pause = std::min(pause * 2, kLongestPause);
  }
  client_.down(worker_, {});
}

/// Until the connection ends; whether it ever was one to a worker.
bool ClientLink::serve(std::unique_ptr<Transport> transport) {
  ClientSession session(client_, *this, std::move(transport));
  const auto end = run_guarded(session);
  if (!end && !stopping_) client_.down(worker_, end.error().message);
  return session.was_up();
}

/// Over the Unix socket where there is one here, over the network otherwise.
Result<std::unique_ptr<Transport>> ClientLink::connect() {
  const bool is_here = !address_.unix_path.empty() && ::access(address_.unix_path.c_str(), F_OK) == 0;
  if (is_here || address_.address.empty()) {
    auto transport = connect_by(AddressFamily::kUnix);
    if (transport || address_.address.empty()) return transport;
  }
  return connect_by(AddressFamily::kTcp);
}

Result<std::unique_ptr<Transport>> ClientLink::connect_by(AddressFamily family) {
  family_ = family;
  auto socket = family == AddressFamily::kUnix
                    ? connect_unix(address_.unix_path)
                    : connect_tcp(address_.address, address_.port, *wakeup_, kConnectPatience);
  if (!socket) return socket.error();
  return client_.handshake->run(std::move(*socket), family, *wakeup_, kConnectPatience);
}

}  // namespace taas::data
