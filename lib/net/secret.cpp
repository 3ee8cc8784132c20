#include "net/secret.hpp"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <array>
#include <memory>

namespace taas::net {

namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kLeastTokenBytes = 16;
constexpr std::string_view kPurpose = "taas-run link 1";  // another use of the same token gets another key

struct Free {
  void operator()(EVP_KDF* kdf) const { EVP_KDF_free(kdf); }
  void operator()(EVP_KDF_CTX* context) const { EVP_KDF_CTX_free(context); }
};

int digit(char letter) {
  if (letter >= '0' && letter <= '9') return letter - '0';
  if (letter >= 'a' && letter <= 'f') return letter - 'a' + 10;
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return -1;
}

/// OpenSSL takes what it only reads as void* too.
OSSL_PARAM octets(const char* name, std::string_view bytes) {
  return OSSL_PARAM_construct_octet_string(name, const_cast<char*>(bytes.data()), bytes.size());
}

bool expand(std::string_view token, std::string_view run_id, std::string& key) {
  const std::unique_ptr<EVP_KDF, Free> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr));
  const std::unique_ptr<EVP_KDF_CTX, Free> context(hkdf ? EVP_KDF_CTX_new(hkdf.get()) : nullptr);
  std::string digest = "SHA256";
  const std::array<OSSL_PARAM, 5> parameters{OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
                                             octets(OSSL_KDF_PARAM_KEY, token), octets(OSSL_KDF_PARAM_SALT, run_id),
                                             octets(OSSL_KDF_PARAM_INFO, kPurpose), OSSL_PARAM_construct_end()};
  auto* bytes = reinterpret_cast<unsigned char*>(key.data());
  return context && EVP_KDF_derive(context.get(), bytes, key.size(), parameters.data()) == 1;
}

}  // namespace

Result<std::string> parse_key(std::string_view hexadecimal) {
  if (hexadecimal.size() != 2 * kKeyBytes) {
    return usage_error(fmt::format("a key has {} hexadecimal digits, not {}", 2 * kKeyBytes, hexadecimal.size()));
  }
  std::string key;
  for (std::size_t i = 0; i < hexadecimal.size(); i += 2) {
    const int high = digit(hexadecimal[i]);
    const int low = digit(hexadecimal[i + 1]);
    if (high < 0 || low < 0) return usage_error("a key has hexadecimal digits only");
    key += static_cast<char>(high * 16 + low);
  }
  return key;
}

std::string print_key(std::string_view key) {
  std::string text;
  for (const char byte : key) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

Result<std::string> derive_key(std::string_view token, std::string_view run_id) {
  if (token.size() < kLeastTokenBytes) {
    return usage_error(
        fmt::format("the token has {} characters, and fewer than {} can be guessed: `openssl rand -hex 16` makes one",
                    token.size(), kLeastTokenBytes));
  }
  std::string key(kKeyBytes, '\0');
  if (!expand(token, run_id, key)) return unavailable_error("OpenSSL cannot derive keys here: it knows no HKDF-SHA256");
  return key;
}

}  // namespace taas::net
