#include "data/server/server_link.hpp"

#include <new>

#include "base/log/log.hpp"
#include "base/quiet_thread.hpp"
#include "data/server/server_session.hpp"
#include "data/server/server_state.hpp"

namespace taas::data {

namespace {

constexpr Duration kHandshakePatience = std::chrono::seconds(5);

}  // namespace

ServerLink::ServerLink(Server::State& server, std::uint64_t number, Fd socket, AddressFamily family)
    : server_(server), number_(number), socket_(std::move(socket)), family_(family) {}

ServerLink::~ServerLink() { stop(); }

Result<> ServerLink::start() {
  return begin_quietly(thread_, [this] { run(); });
}

void ServerLink::turn_away() {
  stopping_ = true;
  wakeup_.wake();
}

void ServerLink::stop() {
  turn_away();
  if (thread_.joinable()) thread_.join();
}

void ServerLink::post(OutFrame answer) {
  const bool was_told = !answers.empty();
  answers.push_back(std::move(answer));
  if (!was_told && std::this_thread::get_id() != thread_.get_id()) wakeup_.wake();
}

void ServerLink::run() {
  try {
    serve();
  } catch (const std::bad_alloc&) {
    server_.remark("a client was cut off: no memory for what it sent, or for the answer");
  }
  server_.end_link(number_);
}

void ServerLink::serve() {
  auto transport = server_.handshake->run(std::move(socket_), family_, wakeup_, kHandshakePatience);
  if (!transport) return tell_refusal(transport.error());
  server_.connections.admit(number_);
  log::info(LogPart::kData, "client {} is linked {}", number_,
            family_ == AddressFamily::kUnix ? "on this machine" : "by TCP");
  ServerSession session(server_, *this, std::move(*transport));
  const auto end = session.run();
  log::info(LogPart::kData, "client {} is gone: {}", number_, end ? "closed here" : end.error().message);
  if (!end && end.error().code == ErrorCode::kProtocol) server_.remark("a client was cut off: " + end.error().message);
}

/// Who only looked, or left, is no news.
void ServerLink::tell_refusal(const Error& why) {
  log::debug(LogPart::kData, "client {} did not come in: {}", number_, why.message);
  if (!stopping_ && why.code == ErrorCode::kProtocol) server_.remark("a connection was refused: " + why.message);
}

}  // namespace taas::data
