#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "store/budget.hpp"

namespace taas::store {

/// One connected client of the store; never used twice.
using ClientId = Id<struct StoreClientTag>;

/// A stored value. Replies share it instead of copying it, so that it costs its size once, however many clients have
/// asked for it; it counts as held until the last of them has read it.
struct Value {
  std::string bytes;
  Share share;
};

/// What is sent: `bytes`, then the value if there is one.
struct Piece {
  std::string bytes;
  std::shared_ptr<const Value> value = {};

  [[nodiscard]] std::size_t size() const { return bytes.size() + (value ? value->bytes.size() : 0); }
};

/// What to send to a client; never empty.
struct Reply {
  ClientId client;
  std::vector<Piece> pieces;
};

}  // namespace taas::store
