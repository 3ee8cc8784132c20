#pragma once

#include <string>
#include <string_view>

namespace taas::node {

/// SHA-256: 32 bytes; none where OpenSSL cannot compute it.
std::string sha256(std::string_view bytes);

}  // namespace taas::node
