#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "catch.hpp"
#include "net/connect/listener.hpp"
#include "net/link.hpp"

/// In place of the usual 5 s, where a test says nothing else: the machine may be busy.
constexpr std::chrono::milliseconds kLongPatience = std::chrono::seconds(60);

/// Turns the event loop until that holds.
template <class Condition>
void turn_until(boost::asio::io_context& io, Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!condition()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    io.restart();
    io.run_one_for(std::chrono::milliseconds(100));
  }
}

inline taas::net::Secret secret(char filling = 'k', std::string run_id = "run-1") {
  return {std::move(run_id), std::string(32, filling)};
}

/// One end of a link, and all that it was told.
struct End {
  explicit End(std::unique_ptr<taas::net::Link> owned) : link(std::move(owned)) {
    taas::net::Link::Callbacks calls;
    calls.on_frame = [this](std::string_view frame) { frames.emplace_back(frame); };
    calls.on_closed = [this](const std::string& reason, bool by_peer) {
      REQUIRE_FALSE(closed);
      closed = {reason, by_peer};
    };
    link->set_callbacks(std::move(calls));
  }

  std::unique_ptr<taas::net::Link> link;
  std::vector<std::string> frames;
  std::optional<std::pair<std::string, bool>> closed;
};

inline const std::pair<std::string, bool> kByPeer{"the peer closed the link", true};
inline const std::pair<std::string, bool> kByThisEnd{"closed by this end", false};

/// A listener and the ends of the links that it accepted.
struct Host {
  Host(boost::asio::io_context& io, taas::net::ListenOptions options) {
    if (options.addresses.empty()) options.addresses = {"127.0.0.1"};
    if (options.secret.key.empty()) options.secret = secret();
    if (options.patience == taas::net::ListenOptions{}.patience) options.patience = kLongPatience;
    auto made = taas::net::Listener::listen(io, std::move(options), [this](std::unique_ptr<taas::net::Link> link) {
      ends.push_back(std::make_unique<End>(std::move(link)));
    });
    REQUIRE(made.has_value());
    listener = std::move(*made);
  }
  explicit Host(boost::asio::io_context& io) : Host(io, taas::net::ListenOptions{}) {}

  std::unique_ptr<taas::net::Listener> listener;
  std::vector<std::unique_ptr<End>> ends;
};

/// Connects, and waits for the outcome.
inline taas::Result<std::unique_ptr<taas::net::Link>> try_connect(boost::asio::io_context& io,
                                                                  taas::net::ConnectOptions options) {
  if (options.addresses.empty()) options.addresses = {"127.0.0.1"};
  if (options.secret.key.empty()) options.secret = secret();
  if (options.patience == taas::net::ConnectOptions{}.patience) options.patience = kLongPatience;
  std::optional<taas::Result<std::unique_ptr<taas::net::Link>>> outcome;
  auto connecting = taas::net::connect(io, std::move(options), [&outcome](auto link) { outcome = std::move(link); });
  turn_until(io, [&outcome] { return outcome.has_value(); });
  return std::move(*outcome);
}

inline std::string failure_of(boost::asio::io_context& io, taas::net::ConnectOptions options) {
  auto link = try_connect(io, std::move(options));
  REQUIRE_FALSE(link.has_value());
  return link.error().message;
}

/// A host and an agent with a link between them; `port` is the host's, or of something in between.
struct Linked {
  explicit Linked(std::uint16_t port = 0) : host(io) { join(port == 0 ? host.listener->port() : port); }

  void join(std::uint16_t port) {
    auto link = try_connect(io, {.addresses = {}, .port = port, .secret = {}});
    REQUIRE(link.has_value());
    agent = std::make_unique<End>(std::move(*link));
    turn_until(io, [this] { return host.ends.size() == 1; });
  }
  End& server() { return *host.ends.front(); }

  boost::asio::io_context io{1};
  Host host;
  std::unique_ptr<End> agent;
};
