#include "net/secret.hpp"

#include "catch.hpp"

namespace secret_test {

using namespace taas;
using namespace taas::net;

TEST_CASE("a key is 64 hexadecimal digits") {
  const std::string text = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1eff";
  const auto key = parse_key(text);
  REQUIRE(key.has_value());
  CHECK(key->size() == 32);
  CHECK(key->front() == '\0');
  CHECK(key->back() == '\xff');
  CHECK(print_key(*key) == text);
  CHECK(parse_key("FF" + text.substr(2))->front() == '\xff');
}

TEST_CASE("what is no key is refused without being repeated") {
  for (const auto& text : {std::string(), std::string(63, 'd'), std::string(66, 'd'), std::string(63, 'd') + "g"}) {
    const auto key = parse_key(text);
    REQUIRE_FALSE(key.has_value());
    CHECK(key.error().code == ErrorCode::kUsage);
    CHECK_THAT(key.error().message, !ContainsSubstring("dd"));
  }
}

TEST_CASE("a token makes the key that RFC 5869 says, another one for each run") {
  // Python: hmac-sha256(salt=run id, token) as extraction key, hmac-sha256(it, purpose + "\x01") as expansion.
  const auto key = derive_key("correct horse battery staple", "run-1");
  REQUIRE(key.has_value());
  CHECK(print_key(*key) == "4df214417fec28e67fd7a27aaa84b31e552bb94848ecf4949c4c6855a7f0cf1e");
  CHECK(*derive_key("correct horse battery staple", "run-2") != *key);
  CHECK(*derive_key("correct horse battery stapler", "run-1") != *key);
}

TEST_CASE("a token that can be guessed is refused") {
  CHECK(derive_key(std::string(16, 'x'), "run-1").has_value());
  const auto key = derive_key("hunter2", "run-1");
  REQUIRE_FALSE(key.has_value());
  CHECK_THAT(key.error().message, ContainsSubstring("openssl rand") && !ContainsSubstring("hunter2"));
}

}  // namespace secret_test
