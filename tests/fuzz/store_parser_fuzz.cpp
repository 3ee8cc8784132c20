// What any client may send: bytes through the parser, and the requests they are into a database with several clients.
//
// The input is cut into pieces: one byte names the client and the length of its next piece. Properties checked on the
// way (abort on failure): a parser uses all bytes unless a request is whole, replies go to connected clients only and
// are never empty, and a client that was dropped is never answered.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>

#include "store/database.hpp"
#include "store/joining.hpp"
#include "store/parser.hpp"

namespace {

using namespace taas::store;

constexpr int kClients = 4;
constexpr int kLongestPiece = 63;

void require(bool holds) {
  if (!holds) std::abort();
}

struct Session {
  Database database;
  std::array<std::optional<Parser>, kClients> clients{Parser(), Parser(), Parser(), Parser()};

  void close(int client) {
    clients[static_cast<std::size_t>(client)].reset();
    database.drop(ClientId{client});
  }

  void apply(int client, Request&& request) {
    if (const auto* set = std::get_if<Set>(&request)) joined_rank(set->key);
    const auto replies = database.apply(ClientId{client}, std::move(request));
    if (!replies) return close(client);
    for (const auto& reply : *replies) {
      require(reply.client.value >= 0 && reply.client.value < kClients && !reply.bytes.empty());
      require(clients[static_cast<std::size_t>(reply.client.value)].has_value());
    }
  }

  void receive(int client, std::string_view bytes) {
    auto& parser = clients[static_cast<std::size_t>(client)];
    while (parser) {
      auto request = parser->next(bytes);
      if (!request) return close(client);
      if (!*request) return require(bytes.empty());
      apply(client, std::move(**request));
    }
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Session session;
  std::string_view input(reinterpret_cast<const char*>(data), size);
  while (!input.empty()) {
    const auto head = static_cast<unsigned char>(input.front());
    input.remove_prefix(1);
    const int client = head / (kLongestPiece + 1);
    const auto piece = input.substr(0, head % (kLongestPiece + 1));
    input.remove_prefix(piece.size());
    if (piece.empty()) {
      session.close(client);
    } else {
      session.receive(client, piece);
    }
  }
  return 0;
}
