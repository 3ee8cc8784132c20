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

TEST_CASE("a random token makes the key that RFC 5869 says, another one for each run") {
  // Python: hmac-sha256(salt=run id, token) as extraction key, hmac-sha256(it, purpose + "\x01") as expansion.
  const std::string token = "000102030405060708090a0b0c0d0e0f";
  const auto key = derive_key(token, "run-1");
  REQUIRE(key.has_value());
  CHECK(print_key(*key) == "761be2b8ede077108b10e92f9999473450c559e6e14730f64306ec3eaba0794c");
  CHECK(*derive_key(token, "run-2") != *key);
  CHECK(*derive_key(token + "0", "run-1") != *key);
}

TEST_CASE("a token that a person thought of goes through scrypt first") {
  // Python: hashlib.scrypt(token, salt=run id, n=65536, r=8, p=1, dklen=32), then as above.
  const auto key = derive_key("correct horse battery staple", "run-1");
  REQUIRE(key.has_value());
  CHECK(print_key(*key) == "0c9db04f644fe0fd4fa44919858062866c98036c5a95722476b38e35beeb4073");
}

TEST_CASE("a token that can be guessed is refused without being repeated") {
  for (const std::string token : {"hunter2", "aaaaaaaaaaaaaaaaaaaaaaaa", "hunter2hunter2hunter2",
                                  "00000000000000000000000000000000", "1212121212121212121212121212121212121212"}) {
    const auto key = derive_key(token, "run-1");
    REQUIRE_FALSE(key.has_value());
    CHECK(key.error().code == ErrorCode::kUsage);
    CHECK_THAT(key.error().message, ContainsSubstring("`taas-run token`") && !ContainsSubstring(token));
  }
}

TEST_CASE("a token that is made is random, and taken for that") {
  const auto token = make_token();
  CHECK(token.size() == 64);
  CHECK(token != make_token());
  CHECK(derive_key(token, "run-1").has_value());
}

}  // namespace secret_test
