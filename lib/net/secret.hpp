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

/// A key out of what a person chose (TAAS_TOKEN, --token-file): HKDF-SHA256 (RFC 5869) of it with the run's id as salt.
/// That makes no weak token strong: who records a handshake can try tokens at home. Shorter than 16 bytes is refused.
Result<std::string> derive_key(std::string_view token, std::string_view run_id);

}  // namespace taas::net
