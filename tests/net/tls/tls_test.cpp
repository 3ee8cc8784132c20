#include "net/tls/tls.hpp"

#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <boost/asio/ssl/stream.hpp>

#include "net/relay.hpp"
#include "net/stranger.hpp"

namespace tls_test {

using namespace taas;
using namespace taas::net;

namespace {

namespace ssl = boost::asio::ssl;
using TlsStream = ssl::stream<boost::asio::ip::tcp::socket>;

/// Gives a context a certificate that it has signed itself.
void certify(ssl::context& context) {
  const std::unique_ptr<EVP_PKEY, void (*)(EVP_PKEY*)> key(EVP_EC_gen("P-256"), EVP_PKEY_free);
  const std::unique_ptr<X509, void (*)(X509*)> certificate(X509_new(), X509_free);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
  X509_set_pubkey(certificate.get(), key.get());
  REQUIRE(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  REQUIRE(SSL_CTX_use_certificate(context.native_handle(), certificate.get()) == 1);
  REQUIRE(SSL_CTX_use_PrivateKey(context.native_handle(), key.get()) == 1);
}

/// How a client's handshake with the host ends.
bool shakes_hands(boost::asio::io_context& io, std::uint16_t port, ssl::context& context) {
  TlsStream stream(io, context);
  stream.next_layer().connect({boost::asio::ip::address_v4::loopback(), port});
  std::optional<bool> good;
  stream.async_handshake(TlsStream::client, [&good](const auto& status) { good = !status; });
  turn_until(io, [&good] { return good.has_value(); });
  return *good;
}

std::string failure_with(const Secret& wrong) {
  boost::asio::io_context io;
  Host host(io);
  auto failure = failure_of(io, {.addresses = {}, .port = host.listener->port(), .secret = wrong});
  CHECK(host.ends.empty());
  return failure.substr(failure.find(": ") + 2);
}

}  // namespace

TEST_CASE("a wrong key and another run's identity are told apart") {
  const std::string key = "wrong secret";
  const std::string run = "another run listens there";
  CHECK(failure_with(secret('x')) == key);
  CHECK(failure_with({"run-1", std::string(31, 'k')}) == key);
  CHECK(failure_with(secret('k', "run-2")) == run);
  CHECK(failure_with(secret('k', "run-1 ")) == run);
}

TEST_CASE("a TLS client without the secret gets nowhere, whatever version it speaks") {
  boost::asio::io_context io;
  Host host(io);
  const bool certified = GENERATE(false, true);
  for (const auto method : {ssl::context::tls_client, ssl::context::tlsv12_client, ssl::context::tlsv13_client}) {
    ssl::context context(method);
    if (certified) certify(context);
    CHECK_FALSE(shakes_hands(io, host.listener->port(), context));
  }
  CHECK(host.ends.empty());
}

TEST_CASE("a server with a certificate instead of the secret is refused") {
  boost::asio::io_context io;
  ssl::context context(ssl::context::tlsv13_server);
  certify(context);
  boost::asio::ip::tcp::acceptor acceptor(io, {boost::asio::ip::address_v4::loopback(), 0});
  TlsStream stream(io, context);
  bool shaken = false;
  acceptor.async_accept(stream.next_layer(), [&](const auto&) {
    stream.async_handshake(TlsStream::server, [&shaken](const auto& status) { shaken = !status; });
  });
  CHECK_THAT(failure_of(io, {.addresses = {}, .port = acceptor.local_endpoint().port(), .secret = {}}),
             ContainsSubstring("wrong secret"));
  CHECK_FALSE(shaken);
}

TEST_CASE("a connection that was recorded and is played again has no effect") {
  boost::asio::io_context io;
  Host host(io);
  Relay relay(io, host.listener->port());
  End agent(try_connect(io, {.addresses = {}, .port = relay.port(), .secret = {}}).value());
  agent.link->send("start the training");
  turn_until(io, [&] { return host.ends.size() == 1 && host.ends.front()->frames.size() == 1; });

  Stranger at_once(io, host.listener->port());
  at_once.say(relay.recorded());
  at_once.wait_until_turned_away();
  CHECK_FALSE(at_once.heard().empty());  // the key is known, but not the fresh one that every connection agrees on
  CHECK(host.ends.size() == 1);
  CHECK(host.ends.front()->frames.size() == 1);
  CHECK_FALSE(host.ends.front()->closed);
}

TEST_CASE("the secret and what is sent cannot be read on the way") {
  boost::asio::io_context io;
  Host host(io);
  Relay relay(io, host.listener->port());
  End agent(try_connect(io, {.addresses = {}, .port = relay.port(), .secret = {}}).value());
  agent.link->send("start the training");
  turn_until(io, [&] { return host.ends.size() == 1 && host.ends.front()->frames.size() == 1; });
  CHECK_THAT(relay.recorded(), !ContainsSubstring("training") && !ContainsSubstring(std::string(8, 'k')));
}

}  // namespace tls_test
