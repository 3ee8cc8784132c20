#include "data/transport/challenge.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <span>
#include <string>
#include <string_view>

#include "data/transport/openssl_call.hpp"

namespace taas::data {

namespace {

constexpr std::string_view kGreeting = "taas-run data 1\n";
constexpr std::size_t kNonceBytes = 32;
constexpr std::size_t kProofBytes = 32;

std::string hmac(std::string_view key, std::string_view text) {
  std::string proof(kProofBytes, '\0');
  unsigned size = 0;
  const OpensslCall call;
  ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()),
         text.size(), reinterpret_cast<unsigned char*>(proof.data()), &size);
  return proof;
}

/// What one conversation is: its two random numbers, and whose run it is.
struct Conversation {
  const net::Secret& secret;
  std::string client_nonce;
  std::string server_nonce;

  [[nodiscard]] std::string proof(std::string_view side) const {
    const auto key = hmac(secret.key, "taas-run data proof 1");  // the same secret serves as TLS key elsewhere
    return hmac(key, std::string(side) + client_nonce + server_nonce + secret.run_id);
  }
};

bool is_equal(std::string_view one, std::string_view other) {
  return one.size() == other.size() && ::CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

Result<std::string> make_nonce() {
  std::string nonce(kNonceBytes, '\0');
  const OpensslCall call;
  if (::RAND_bytes(reinterpret_cast<unsigned char*>(nonce.data()), kNonceBytes) != 1) {
    return unavailable_error("this machine has no random numbers");
  }
  return nonce;
}

/// Sends and receives with a deadline.
class Talk {
 public:
  Talk(Transport& transport, const Wakeup& wakeup, Instant deadline)
      : transport_(transport), wakeup_(wakeup), deadline_(deadline) {}

  Result<> say(std::string_view text) {
    while (!text.empty()) {
      const std::array<iovec, 1> parts{iovec{const_cast<char*>(text.data()), text.size()}};
      const auto sent = transport_.write(parts);
      if (!sent) return sent.error();
      if (*sent == 0 && !wait(Ready::kWrite)) return silence();
      text.remove_prefix(*sent);
    }
    return {};
  }

  Result<std::string> hear(std::size_t size) {
    std::string text(size, '\0');
    for (std::size_t got = 0; got < size;) {
      const auto bytes = transport_.read(std::as_writable_bytes(std::span(text)).subspan(got));
      if (!bytes) return bytes.error();
      if (*bytes == 0 && !wait(Ready::kRead)) return silence();
      got += *bytes;
    }
    return text;
  }

 private:
  bool wait(Ready what) { return wait_until_ready(transport_.socket(), what, wakeup_, deadline_ - steady_now()); }
  static Error silence() { return unavailable_error("no answer in time"); }

  Transport& transport_;
  const Wakeup& wakeup_;
  Instant deadline_;
};

Result<> prove_as_client(Talk talk, const net::Secret& secret) {
  const auto nonce = make_nonce();
  if (!nonce) return nonce.error();
  if (auto said = talk.say(std::string(kGreeting) + *nonce); !said) return said;
  const auto answer = talk.hear(kNonceBytes + kProofBytes);
  if (!answer) return Error(answer.error()).with("wrong secret, or not a data worker in plain mode");
  const Conversation conversation{secret, *nonce, answer->substr(0, kNonceBytes)};
  auto said = talk.say(conversation.proof("client"));  // in any case: then a worker with another secret knows why
  if (!is_equal(answer->substr(kNonceBytes), conversation.proof("server"))) return protocol_error("wrong secret");
  return said;
}

Result<> prove_as_server(Talk talk, const net::Secret& secret) {
  const auto greeting = talk.hear(kGreeting.size() + kNonceBytes);
  if (!greeting) return greeting.error();
  if (!greeting->starts_with(kGreeting)) return protocol_error("the caller is not a client of this run in plain mode");
  const auto nonce = make_nonce();
  if (!nonce) return nonce.error();
  const Conversation conversation{secret, greeting->substr(kGreeting.size()), *nonce};
  if (auto said = talk.say(*nonce + conversation.proof("server")); !said) return said;
  const auto proof = talk.hear(kProofBytes);
  if (!proof) return proof.error();
  if (!is_equal(*proof, conversation.proof("client"))) return protocol_error("wrong secret");
  return {};
}

}  // namespace

Result<> prove_to_each_other(Transport& transport, net::Role role, const net::Secret& secret, const Wakeup& wakeup,
                             Instant deadline) {
  const Talk talk(transport, wakeup, deadline);
  return role == net::Role::kClient ? prove_as_client(talk, secret) : prove_as_server(talk, secret);
}

}  // namespace taas::data
