#pragma once

#include <boost/endian/conversion.hpp>
#include <memory>
#include <string>
#include <vector>

#include "store/reply.hpp"

namespace taas::store {

// How a reply's parts are put on the wire: numbers little-endian, strings behind their length in 8 bytes.

using Pieces = std::vector<Piece>;

template <class Number>
void put_number(std::string& out, Number number) {
  unsigned char bytes[sizeof(Number)];
  boost::endian::endian_store<Number, sizeof(Number), boost::endian::order::little>(bytes, number);
  out.append(reinterpret_cast<const char*>(bytes), sizeof(bytes));
}

template <class Number>
std::string number_bytes(Number number) {
  std::string out;
  put_number(out, number);
  return out;
}

void put_blob(std::string& out, const std::string& blob);
/// `pieces` has a last one that ends in bytes; so it does afterwards. A large value is shared.
void put_value(Pieces& pieces, const std::shared_ptr<const Value>& value);

Pieces one_piece(std::string bytes);
Pieces blob_piece(const std::string& blob);
Pieces value_pieces(const std::shared_ptr<const Value>& value);

}  // namespace taas::store
