#include "data/server/server_state.hpp"

#include <unistd.h>

namespace taas::data {

namespace {

constexpr std::size_t kMostRemarks = 100;

}  // namespace

Server::State::State(ServerOptions chosen) : options(std::move(chosen)), process(::getpid()) {
  auto made = Handshake::make(net::Role::kServer, {.run_id = options.run_id, .key = options.key}, options.encryption);
  if (!made) {
    remark(made.error().message);
    return;
  }
  handshake = std::move(*made);
  accept();
}

void Server::State::accept() {
  if (accepts || !handshake) return;
  const auto begun = connections.start();
  accepts = begun.has_value();
  if (!accepts) remark("no client can be accepted: " + begun.error().message);
}

void Server::State::end_link(std::uint64_t link) {
  std::vector<OutFrame> unsent_answers;  // let go after the mutex
  const std::lock_guard lock(mutex);
  unsent_answers = jobs.end_link(link);
  connections.end(link);
}

void Server::State::remark(std::string text) {
  const std::lock_guard lock(mutex);
  if (remarks.size() < kMostRemarks) remarks.push_back(std::move(text));
}

}  // namespace taas::data
