#include <fcntl.h>

#include "net/ends.hpp"
#include "net/link.hpp"
#include "net/relay.hpp"

namespace tls_link_test {

using namespace taas;
using namespace taas::net;

namespace {

std::vector<std::string> numbered(int count) {
  std::vector<std::string> frames;
  for (int i = 0; i < count; ++i) frames.push_back("frame " + std::to_string(i));
  return frames;
}

/// Of this end or the other one; -1 when the descriptor is no socket of the Internet.
int port_of(int fd, int (*name)(int, sockaddr*, socklen_t*)) {
  sockaddr_in address{};
  socklen_t size = sizeof(address);
  if (name(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0 || address.sin_family != AF_INET) return -1;
  return ntohs(address.sin_port);
}

}  // namespace

TEST_CASE("frames pass both ways, in order") {
  Linked linked;
  CHECK(linked.agent->link->peer_address() == "127.0.0.1");
  CHECK(linked.server().link->local_address() == "127.0.0.1");
  const auto frames = numbered(3000);
  for (const auto& frame : frames) {
    linked.agent->link->send(frame);
    linked.server().link->send(frame);
  }
  turn_until(linked.io, [&] { return linked.server().frames.size() + linked.agent->frames.size() == 6000; });
  CHECK(linked.server().frames == frames);
  CHECK(linked.agent->frames == frames);
}

TEST_CASE("empty frames, binary ones and the longest pass") {
  Linked linked;
  std::vector<std::string> frames{"", std::string("\0\xff\n", 3), std::string(kMostFrameBytes, 'x'), "after"};
  for (const auto& frame : frames) linked.agent->link->send(frame);
  turn_until(linked.io, [&] { return linked.server().frames.size() == frames.size(); });
  CHECK((linked.server().frames == frames));
}

TEST_CASE("a frame that is too long closes the link, and is not sent") {
  Linked linked;
  linked.agent->link->send(std::string(kMostFrameBytes + 1, 'x'));
  CHECK_FALSE(linked.agent->closed);
  turn_until(linked.io, [&] { return linked.agent->closed && linked.server().closed; });
  CHECK(linked.agent->closed->first == "a frame of 16777217 bytes is too long to be sent");
  CHECK(linked.server().frames.empty());
}

TEST_CASE("what was sent before close() arrives, whichever end closes") {
  Linked linked;
  const bool server_closes = GENERATE(false, true);
  auto& closing = server_closes ? linked.server() : *linked.agent;
  auto& other = server_closes ? *linked.agent : linked.server();
  const auto frames = numbered(2000);
  for (const auto& frame : frames) {
    closing.link->send(frame);
    other.link->send(std::string(500, 'x'));  // what is never read must not take back what was sent
  }
  closing.link->close();
  closing.link->send("too late");
  CHECK_FALSE(closing.closed);
  turn_until(linked.io, [&] { return closing.closed && other.closed; });
  CHECK(other.frames == frames);
  CHECK(other.closed == kByPeer);
  CHECK(closing.closed == kByThisEnd);
}

TEST_CASE("both ends may close at the same time") {
  Linked linked;
  linked.agent->link->close();
  linked.server().link->close();
  turn_until(linked.io, [&] { return linked.agent->closed && linked.server().closed; });
  CHECK(linked.agent->closed == kByThisEnd);
  CHECK(linked.server().closed == kByThisEnd);
}

TEST_CASE("a link that is destroyed after close() still sends what it has") {
  Linked linked;
  const auto frames = numbered(2000);
  for (const auto& frame : frames) linked.agent->link->send(frame);
  linked.agent->link->close();
  linked.agent->link.reset();
  turn_until(linked.io, [&] { return linked.server().closed.has_value(); });
  CHECK(linked.server().frames == frames);
  CHECK_FALSE(linked.agent->closed);
}

TEST_CASE("a link that is destroyed is closed") {
  Linked linked;
  linked.agent->link.reset();
  turn_until(linked.io, [&] { return linked.server().closed.has_value(); });
  CHECK(linked.server().closed == kByPeer);
  CHECK_FALSE(linked.agent->closed);
}

TEST_CASE("a link may be destroyed by what it calls") {
  Linked linked;
  int frames = 0;
  Link::Callbacks calls;
  calls.on_closed = [](const std::string&, bool) { FAIL("destroyed links are silent"); };
  calls.on_frame = [&linked, &frames, padding = std::string(100, 'p')](std::string_view frame) {
    ++frames;
    linked.agent->link.reset();
    CHECK(frame == "first");  // both the frame and the callback itself outlive the link
    CHECK(padding == std::string(100, 'p'));
  };
  linked.agent->link->set_callbacks(std::move(calls));
  linked.server().link->send("first");
  linked.server().link->send("second");
  turn_until(linked.io, [&] { return linked.server().closed.has_value(); });
  CHECK(frames == 1);
}

TEST_CASE("nothing is read before there is someone to read") {
  Linked linked;
  std::unique_ptr<Link> second =
      try_connect(linked.io, {.addresses = {}, .port = linked.host.listener->port(), .secret = {}}).value();
  turn_until(linked.io, [&] { return linked.host.ends.size() == 2; });
  linked.host.ends[1]->link->send("early");
  linked.server().link->send("turns the loop");
  turn_until(linked.io, [&] { return linked.agent->frames.size() == 1; });
  End late(std::move(second));
  turn_until(linked.io, [&] { return late.frames.size() == 1; });
  CHECK(late.frames.front() == "early");
}

TEST_CASE("a connection that was reset was closed by the peer") {
  boost::asio::io_context io;
  Host host(io);
  Relay relay(io, host.listener->port());
  End agent(try_connect(io, {.addresses = {}, .port = relay.port(), .secret = {}}).value());
  turn_until(io, [&] { return host.ends.size() == 1; });
  relay.reset();
  turn_until(io, [&] { return agent.closed && host.ends.front()->closed; });
  CHECK(agent.closed == kByPeer);
  CHECK(host.ends.front()->closed == kByPeer);
}

TEST_CASE("a changed byte ends the link, and nothing of it arrives") {
  boost::asio::io_context io;
  Host host(io);
  Relay relay(io, host.listener->port());
  End agent(try_connect(io, {.addresses = {}, .port = relay.port(), .secret = {}}).value());
  agent.link->send("good");
  turn_until(io, [&] { return host.ends.size() == 1 && host.ends.front()->frames.size() == 1; });
  relay.tamper([](std::string& bytes) { bytes.back() = static_cast<char>(bytes.back() ^ 1); });
  agent.link->send("bad");
  turn_until(io, [&] { return host.ends.front()->closed.has_value(); });
  CHECK_THAT(host.ends.front()->closed->first, ContainsSubstring("tampered"));
  CHECK_FALSE(host.ends.front()->closed->second);
  CHECK(host.ends.front()->frames == std::vector<std::string>{"good"});
}

TEST_CASE("no child inherits a socket of a link") {
  Linked linked;
  const auto port = linked.host.listener->port();
  int sockets = 0;
  for (int fd = 3; fd < 256; ++fd) {
    if (port_of(fd, ::getsockname) != port && port_of(fd, ::getpeername) != port) continue;
    ++sockets;
    INFO("descriptor " << fd);
    CHECK((::fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
  CHECK(sockets == 3);
}

}  // namespace tls_link_test
