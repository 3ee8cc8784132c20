#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>
#include <vector>

// What a c10d TCPStore client can ask, one struct a request. The protocol's numbers are torch's public enumeration in
// c10d/store/TCPStoreBackend.hpp; the answers are those of torch's own (libuv) server, byte for byte, save that a wait
// ends exactly when its last key has come (tests/store/same_answers_test.py says where torch's server errs).
namespace taas::store {

struct Set {
  std::string key, value;
};
/// Answer: the value now stored; a missing key is created when `expected` is empty, and else `expected` comes back.
struct CompareSet {
  std::string key, expected, desired;
};
/// Answer: the value; empty when there is none (clients wait for the key first).
struct Get {
  std::string key;
};
/// Answer: the sum, which is stored as decimal text.
struct Add {
  std::string key;
  std::int64_t amount = 0;
};
/// Answer: one byte, 0 when every key is there.
struct Check {
  std::vector<std::string> keys;
};
/// Answer, as soon as every key has been there: one byte 0.
struct Wait {
  std::vector<std::string> keys;
};
struct CountKeys {};
/// Answer: the number of keys deleted, 0 or 1.
struct Delete {
  std::string key;
};
struct Append {
  std::string key, value;
};
struct MultiGet {
  std::vector<std::string> keys;
};
struct MultiSet {
  std::vector<std::pair<std::string, std::string>> entries;
};
/// Answer: one byte 1; the wait's own 0 may cross it on the wire.
struct CancelWait {};
/// Answer: the nonce.
struct Ping {
  std::uint32_t nonce = 0;
};
struct QueuePush {
  std::string key, value;
};
/// Answer: the length before and the oldest value, or 0 alone when the queue is empty.
struct QueuePop {
  std::string key;
};
struct QueueLength {
  std::string key;
};
/// Answer: how many keys there are, and each of them; for more than kMaxKeys the connection is closed.
struct ListKeys {};
/// Answer, as soon as `size` clients have come: one byte 0. The number that came is kept as text under the key.
struct Barrier {
  std::string key;
  std::int64_t size = 0;
};

using Request = std::variant<Set, CompareSet, Get, Add, Check, Wait, CountKeys, Delete, Append, MultiGet, MultiSet,
                             CancelWait, Ping, QueuePush, QueuePop, QueueLength, ListKeys, Barrier>;

}  // namespace taas::store
