#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"

namespace taas::net {

/// The run's shared secret: what TLS 1.3 authenticates both ends with (external pre-shared key, RFC 8446 section 2.2).
struct Secret {
  std::string run_id;  ///< the key's identity, at most 255 bytes; not secret
  std::string key;     ///< 32 random bytes, raw
};

/// 64 hexadecimal digits <-> Secret::key; an error names what is wrong without repeating the text.
Result<std::string> parse_key(std::string_view hexadecimal);
std::string print_key(std::string_view key);

/// A key out of a token (TAAS_TOKEN, --token-file): HKDF-SHA256 (RFC 5869) of it with the run's id as salt. A token
/// that is not random, 32 hexadecimal digits or more, first goes through scrypt (RFC 7914): who records a handshake can
/// try words and phrases at home, and each try then takes as long as here, a fifth of a second. Fewer than 16
/// characters, or fewer than 8 different ones, are refused.
Result<std::string> derive_key(std::string_view token, std::string_view run_id);

/// A random one of 256 bits, as text.
std::string make_token();

}  // namespace taas::net
