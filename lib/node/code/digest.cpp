#include "node/code/digest.hpp"

#include <openssl/evp.h>

namespace taas::node {

std::string sha256(std::string_view bytes) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  std::size_t length = 0;
  const bool done = EVP_Q_digest(nullptr, "SHA256", nullptr, bytes.data(), bytes.size(), digest, &length) == 1;
  return done ? std::string(reinterpret_cast<const char*>(digest), length) : std::string();
}

}  // namespace taas::node
