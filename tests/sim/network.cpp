#include <fmt/format.h>

#include "cluster.hpp"
#include "run/messages/wire.hpp"

namespace taas::sim {

using namespace std::chrono_literals;

namespace {

constexpr std::size_t kFrame = 64 * 1024;

}  // namespace

run::AgentId Cluster::connection_of(int number) const {
  auto latest = latest_.find(number);
  bool open = latest != latest_.end() && connections_.at(latest->second).agent_open;
  return open ? latest->second : run::AgentId{-1};
}

/// An agent that connects again has closed its former link.
void Cluster::connect(int number) {
  if (auto former = connection_of(number); former.value >= 0) close_by_agent(former, "the agent has closed its link");
  Node& from = node(number);
  agenda_.after(2 * (from.up.delay + from.down.delay), [this, number, of = from.incarnation()] {
    Node& host = node(number);
    if (of != host.incarnation() || !host.agent_runs()) return;
    bool linked = !host.up.cut && !host.down.cut;
    if (linked && !parted_) {
      latest_[number] = open(number);
      return host.tell(run::LinkUp{});
    }
    host.later(linked ? 1ms : 1s, [&host, of, linked] {
      if (of == host.incarnation()) host.tell(run::LinkDown{"cannot connect", {}, linked});
    });
  });
}

run::AgentId Cluster::open(int number) {
  Node& from = node(number);
  run::AgentId id{++last_connection_};
  connections_.emplace(
      id, Connection{number, std::make_shared<Pipe>(agenda_, from.up), std::make_shared<Pipe>(agenda_, from.down)});
  return id;
}

/// One attempt at a time, whose first packet is sent again after a second.
void Cluster::ask(int number, const run::Heartbeat& heartbeat) {
  if (!asking_.insert(number).second) return;
  const int of = node(number).incarnation();
  try_to_ask(number, of, heartbeat);
  agenda_.after(1s, [this, number, of, heartbeat] { try_to_ask(number, of, heartbeat); });
  agenda_.after(2s, [this, number] { asking_.erase(number); });
}

void Cluster::try_to_ask(int number, int of, const run::Heartbeat& heartbeat) {
  Node& host = node(number);
  const bool asks = asking_.contains(number) && of == host.incarnation() && host.agent_runs();
  if (!asks || parted_ || host.up.cut || host.down.cut) return;
  agenda_.after(2 * (host.up.delay + host.down.delay), [this, number, heartbeat] {
    if (!asking_.erase(number)) return;
    auto id = open(number);
    connections_.at(id).aside = true;
    auto sent = heartbeat;
    sent.sent = node(number).clock();
    connections_.at(id).up->send([this, id, sent] { receive(id, sent); });
  });
}

void Cluster::send(int number, const run::AgentMessage& message) {
  auto id = connection_of(number);
  if (id.value < 0) return;
  if (!std::holds_alternative<run::Heartbeat>(message)) ++outcome_.messages[static_cast<std::size_t>(number)];
  connections_.at(id).up->send([this, id, framed = in_a_frame(message)] {
    connections_.at(id).coordinator_open ? receive(id, framed) : lose_agent_end(id);
  });
}

/// As a link does with what is too long. Frames are shorter here, so that worlds stay small.
run::AgentMessage Cluster::in_a_frame(const run::AgentMessage& message) {
  const auto* exited = std::get_if<run::RankExited>(&message);
  if (exited == nullptr || exited->evidence.last_lines.empty()) return message;
  auto frame = run::encode(message);
  if (frame.size() > kFrame) frame = run::encode(run::shorten(message));
  require(frame.size() <= kFrame, "a message is too long for a frame, and stays so");
  return run::decode_agent_message(frame).value();
}

void Cluster::close_by_agent(run::AgentId id, const std::string& reason) {
  auto& connection = connections_.at(id);
  if (!connection.agent_open) return;
  connection.agent_open = false;
  connection.up->send([this, id, reason] {
    auto& to = connections_.at(id);
    if (!std::exchange(to.coordinator_open, false)) return;
    feed(run::AgentLeft{id, reason, true, agenda_.now()});
  });
}

void Cluster::close_by_coordinator(run::AgentId id) {
  auto& connection = connections_.at(id);
  if (!std::exchange(connection.coordinator_open, false)) return;
  connection.down->send([this, id] { end_for_agent(id, "closed"); });
}

/// The agent has sent into a connection that the coordinator's machine does not know any more: a reset comes back.
void Cluster::lose_agent_end(run::AgentId id) {
  connections_.at(id).down->send([this, id] { end_for_agent(id, "reset"); });
}

void Cluster::end_for_agent(run::AgentId id, const char* reason) {
  auto& to = connections_.at(id);
  if (std::exchange(to.agent_open, false) && !to.aside) node(to.node).tell(run::LinkDown{reason, {}});
}

void Cluster::lose_coordinator_end(run::AgentId id) {
  connections_.at(id).up->send([this, id] {
    auto& to = connections_.at(id);
    if (!std::exchange(to.coordinator_open, false)) return;
    feed(run::AgentLeft{id, "reset", true, agenda_.now()});
  });
}

void Cluster::heal(int number, Duration longest_pause) {
  node(number).up.cut = node(number).down.cut = false;
  for (auto& [id, connection] : connections_) {
    if (connection.node != number) continue;
    connection.up->retry(random_.up_to(longest_pause));
    connection.down->retry(random_.up_to(longest_pause));
  }
}

}  // namespace taas::sim
