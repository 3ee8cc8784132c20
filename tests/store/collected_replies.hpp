#pragma once

#include <map>
#include <string>
#include <utility>

#include "catch.hpp"
#include "store/database.hpp"
#include "store/wire.hpp"

// What clients ask of a database, and what they get.
namespace taas::store::collected_replies {

inline constexpr ClientId kA{0};
inline constexpr ClientId kB{1};
inline constexpr ClientId kC{2};

inline const std::string kZero(1, '\0');
inline const std::string kOne(1, '\1');

/// A database whose replies are collected by client.
struct Store {
  Database database;
  std::map<int, std::string> inbox;

  void ask(ClientId client, Request request) {
    auto replies = database.apply(client, std::move(request));
    REQUIRE(replies.has_value());
    for (const auto& reply : *replies) inbox[reply.client.value] += wire::text_of(reply.pieces);
  }
  /// What has come for the client since the last time.
  std::string take(ClientId client) { return std::exchange(inbox[client.value], {}); }
  std::string answer(ClientId client, Request request) {
    ask(client, std::move(request));
    return take(client);
  }
};

}  // namespace taas::store::collected_replies
