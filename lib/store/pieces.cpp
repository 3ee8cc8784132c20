#include "store/pieces.hpp"

#include <utility>

namespace taas::store {

namespace {

/// Values up to here are copied into replies, which is less work than sharing them.
constexpr std::size_t kCopiedBytes = 512;

}  // namespace

void put_blob(std::string& out, const std::string& blob) {
  put_number<std::uint64_t>(out, blob.size());
  out += blob;
}

Pieces one_piece(std::string bytes) {
  Pieces pieces;
  pieces.push_back({std::move(bytes)});
  return pieces;
}

Pieces blob_piece(const std::string& blob) {
  std::string out;
  out.reserve(sizeof(std::uint64_t) + blob.size());
  put_blob(out, blob);
  return one_piece(std::move(out));
}

void put_value(Pieces& pieces, const std::shared_ptr<const Value>& value) {
  auto& out = pieces.back().bytes;
  if (!value) return put_number<std::uint64_t>(out, 0);
  if (value->bytes.size() <= kCopiedBytes) return put_blob(out, value->bytes);
  put_number<std::uint64_t>(out, value->bytes.size());
  pieces.back().value = value;
  pieces.emplace_back();
}

Pieces value_pieces(const std::shared_ptr<const Value>& value) {
  Pieces pieces(1);
  put_value(pieces, value);
  return pieces;
}

}  // namespace taas::store
