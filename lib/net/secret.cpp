#include "net/secret.hpp"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/params.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <set>

#include "base/ids.hpp"

namespace taas::net {

namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::size_t kLeastTokenBytes = 16;
constexpr std::size_t kLeastDifferent = 8;
constexpr std::size_t kRandomDigits = 32;                 // of 128 bits
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

/// 32 bytes of the key derivation function; empty where OpenSSL does not have it.
std::string derive(const char* function, const OSSL_PARAM* parameters) {
  const std::unique_ptr<EVP_KDF, Free> kdf(EVP_KDF_fetch(nullptr, function, nullptr));
  const std::unique_ptr<EVP_KDF_CTX, Free> context(kdf ? EVP_KDF_CTX_new(kdf.get()) : nullptr);
  std::string key(kKeyBytes, '\0');
  auto* bytes = reinterpret_cast<unsigned char*>(key.data());
  return context && EVP_KDF_derive(context.get(), bytes, key.size(), parameters) == 1 ? key : std::string();
}

std::string expand(std::string_view token, std::string_view run_id) {
  std::string digest = "SHA256";
  const std::array<OSSL_PARAM, 5> parameters{OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
                                             octets(OSSL_KDF_PARAM_KEY, token), octets(OSSL_KDF_PARAM_SALT, run_id),
                                             octets(OSSL_KDF_PARAM_INFO, kPurpose), OSSL_PARAM_construct_end()};
  return derive("HKDF", parameters.data());
}

/// With 64 MiB of memory.
std::string stretch(std::string_view token, std::string_view run_id) {
  std::uint64_t work = 1 << 16;
  std::uint32_t block = 8;
  std::uint32_t lanes = 1;
  std::uint64_t most_memory = std::uint64_t{128} << 20;
  const std::array<OSSL_PARAM, 7> parameters{octets(OSSL_KDF_PARAM_PASSWORD, token),
                                             octets(OSSL_KDF_PARAM_SALT, run_id),
                                             OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_N, &work),
                                             OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_R, &block),
                                             OSSL_PARAM_construct_uint32(OSSL_KDF_PARAM_SCRYPT_P, &lanes),
                                             OSSL_PARAM_construct_uint64(OSSL_KDF_PARAM_SCRYPT_MAXMEM, &most_memory),
                                             OSSL_PARAM_construct_end()};
  return derive("SCRYPT", parameters.data());
}

bool is_random(std::string_view token) {
  return token.size() >= kRandomDigits &&
         std::all_of(token.begin(), token.end(), [](char letter) { return digit(letter) >= 0; });
}

Result<> check_token(std::string_view token) {
  const auto way_out = "`taas-run token` makes one";
  if (token.size() < kLeastTokenBytes) {
    return usage_error(fmt::format("the token has {} characters, and fewer than {} can be guessed: {}", token.size(),
                                   kLeastTokenBytes, way_out));
  }
  const auto different = std::set<char>(token.begin(), token.end()).size();
  if (different >= kLeastDifferent) return {};
  return usage_error(
      fmt::format("the token has only {} different characters, and with fewer than {} it can be guessed: "
                  "{}",
                  different, kLeastDifferent, way_out));
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
  if (auto good = check_token(token); !good) return good.error();
  const auto random = is_random(token) ? std::string(token) : stretch(token, run_id);
  if (random.empty()) {
    return unavailable_error(
        "OpenSSL cannot derive keys from words here: it knows no scrypt; use a token that `taas-run token` made");
  }
  auto key = expand(random, run_id);
  if (key.empty()) return unavailable_error("OpenSSL cannot derive keys here: it knows no HKDF-SHA256");
  return key;
}

std::string make_token() { return random_hex(static_cast<int>(kKeyBytes)); }

}  // namespace taas::net
