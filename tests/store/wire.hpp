#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

/// Requests as a client puts them on the wire, written down independently of the parser.
namespace wire {

// clang-format off
enum Type : unsigned char {
  kValidate, kSet, kCompareSet, kGet, kAdd, kCheck, kWait, kCountKeys, kDelete, kAppend, kMultiGet, kMultiSet,
  kCancelWait, kPing, kQueuePush, kQueuePop, kQueueLength, kListKeys, kBarrier,
};
// clang-format on

inline std::string number(std::uint64_t value, int width = 8) {
  std::string bytes;
  for (int i = 0; i < width; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xFF);
  return bytes;
}

/// What a client receives of a reply's pieces.
template <class Pieces>
std::string text_of(const Pieces& pieces) {
  std::string text;
  for (const auto& piece : pieces) text += piece.bytes + (piece.value ? piece.value->bytes : std::string());
  return text;
}

inline std::string blob(std::string_view text) { return number(text.size()) + std::string(text); }

inline std::string request(Type type, std::string_view arguments = {}) {
  return std::string(1, static_cast<char>(type)) + std::string(arguments);
}

inline std::string blobs(Type type, std::initializer_list<std::string_view> texts) {
  auto bytes = request(type);
  for (const auto text : texts) bytes += blob(text);
  return bytes;
}

inline std::string counted(Type type, std::uint64_t count, std::initializer_list<std::string_view> texts) {
  auto bytes = request(type, number(count));
  for (const auto text : texts) bytes += blob(text);
  return bytes;
}

inline std::string greeting() { return request(kValidate, number(0x3C85F7CE, 4)); }
inline std::string ping(std::uint32_t nonce) { return request(kPing, number(nonce, 4)); }
inline std::string set(std::string_view key, std::string_view value) { return blobs(kSet, {key, value}); }
inline std::string get(std::string_view key) { return blobs(kGet, {key}); }
inline std::string wait(std::string_view key) { return counted(kWait, 1, {key}); }

}  // namespace wire
