#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "run/messages/wire.hpp"

/// What a peer that has the secret may send: bytes to a message or an error. A message that is understood says the same
/// once it was written and read again.
template <class Decode>
int fuzz_messages(const std::uint8_t* data, std::size_t size, Decode decode) {
  const auto message = decode(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!message) {
    if (message.error().message.empty()) std::abort();
    return 0;
  }
  const auto text = taas::run::encode(*message);
  const auto again = decode(text);
  if (!again || taas::run::encode(*again) != text) std::abort();
  return 0;
}
