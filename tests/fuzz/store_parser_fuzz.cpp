// What any client may send: bytes through the parser, and the requests they are into a database with several clients.
//
// The input is cut into pieces: one byte names the client and the length of its next piece. Properties checked on the
// way (abort on failure): a parser uses all bytes unless a request is whole, replies go to connected clients only and
// are never empty, a client that was dropped is never answered, and what is held stays within the budget. A large value
// is there from the beginning under the key "b", so that short requests can ask for long answers.
#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <string>
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

constexpr std::size_t kMostHeld = 1 << 20;
constexpr std::size_t kLargeValue = 256 << 10;
constexpr std::size_t kMostOwnReply = 1 << 20;  // of the short requests that inputs are

struct Session {
  std::shared_ptr<Budget> budget = std::make_shared<Budget>(kMostHeld);
  Database database{budget};
  std::array<std::optional<Parser>, kClients> clients{Parser(), Parser(), Parser(), Parser()};

  Session() { require(database.apply(ClientId{0}, Set{"b", std::string(kLargeValue, 'x')}).has_value()); }

  void close(int client) {
    clients[static_cast<std::size_t>(client)].reset();
    database.drop(ClientId{client});
  }

  void apply(int client, Request&& request) {
    if (const auto* set = std::get_if<Set>(&request)) joined_rank(set->key);
    const auto replies = database.apply(ClientId{client}, std::move(request));
    require(budget->held() <= kMostHeld);
    if (!replies) return close(client);
    for (const auto& reply : *replies) {
      require(reply.client.value >= 0 && reply.client.value < kClients && !reply.pieces.empty());
      std::size_t own = 0;
      for (const auto& piece : reply.pieces) own += piece.bytes.size();
      require(own <= kMostOwnReply);
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
