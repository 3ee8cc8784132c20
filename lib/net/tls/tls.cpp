#include "net/tls/tls.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <array>
#include <boost/asio/ssl/error.hpp>
#include <string_view>

#include "net/sockets.hpp"

namespace taas::net {

namespace {

namespace ssl = boost::asio::ssl;

constexpr const char* kCipherSuite = "TLS_AES_128_GCM_SHA256";
constexpr std::array<unsigned char, 2> kCipherSuiteId{0x13, 0x01};

/// Where a context keeps its Tls. Asio uses OpenSSL's "application data" itself.
int tls_index() {
  static const int index = SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return index;
}

}  // namespace

/// What OpenSSL asks during a handshake. A session that only holds the key is its form of an external pre-shared key.
struct PskCallbacks {
  static const Tls& tls_of(SSL* connection) {
    return *static_cast<const Tls*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(connection), tls_index()));
  }

  static SSL_SESSION* make_session(SSL* connection) {
    const auto& key = tls_of(connection).secret_.key;
    auto* session = SSL_SESSION_new();
    const auto* cipher = SSL_CIPHER_find(connection, kCipherSuiteId.data());
    const auto* bytes = reinterpret_cast<const unsigned char*>(key.data());
    if (session && cipher && SSL_SESSION_set1_master_key(session, bytes, key.size()) == 1 &&
        SSL_SESSION_set_cipher(session, cipher) == 1 &&
        SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1) {
      return session;
    }
    SSL_SESSION_free(session);
    return nullptr;
  }

  /// The client's: which key it offers.
  static int offer(SSL* connection, const EVP_MD*, const unsigned char** id, std::size_t* id_size,
                   SSL_SESSION** session) {
    const auto& identity = tls_of(connection).identity_;
    *id = reinterpret_cast<const unsigned char*>(identity.data());
    *id_size = identity.size();
    *session = make_session(connection);
    return *session ? 1 : 0;
  }

  /// The server's: the key of an offered identity. Without one the handshake goes on, and fails for want of a
  /// certificate.
  static int find(SSL* connection, const unsigned char* id, std::size_t id_size, SSL_SESSION** session) {
    const std::string_view identity(reinterpret_cast<const char*>(id), id_size);
    const bool known = identity == tls_of(connection).identity_;
    *session = known ? make_session(connection) : nullptr;
    return !known || *session ? 1 : 0;
  }
};

Tls::Tls(Role role, Secret secret)
    : role_(role),
      secret_(std::move(secret)),
      identity_("taas-run " + secret_.run_id),
      context_(role == Role::kClient ? ssl::context::tlsv13_client : ssl::context::tlsv13_server) {}

bool Tls::configure() {
  auto* context = context_.native_handle();
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
  // A client trusts no certificate at all, so that a server that cannot prove the secret has no other way.
  if (role_ == Role::kClient) SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_psk_use_session_callback(context, role_ == Role::kClient ? PskCallbacks::offer : nullptr);
  SSL_CTX_set_psk_find_session_callback(context, role_ == Role::kServer ? PskCallbacks::find : nullptr);
  return SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
         SSL_CTX_set_ciphersuites(context, kCipherSuite) == 1 && SSL_CTX_set_num_tickets(context, 0) == 1 &&
         SSL_CTX_set_ex_data(context, tls_index(), this) == 1;
}

Result<std::shared_ptr<Tls>> Tls::make(Role role, Secret secret) {
  constexpr const char* kNoTls = "OpenSSL offers no TLS 1.3 with TLS_AES_128_GCM_SHA256 here";
  try {
    std::shared_ptr<Tls> tls(new Tls(role, std::move(secret)));
    if (!tls->configure()) return unavailable_error(kNoTls);
    return tls;
  } catch (const boost::system::system_error&) {
    return unavailable_error(kNoTls);
  }
}

bool has_proved_secret(SSL* connection) {
  return SSL_version(connection) == TLS1_3_VERSION && SSL_session_reused(connection) == 1;
}

std::string explain_handshake(const boost::system::error_code& status) {
  if (status.category() != boost::asio::error::get_ssl_category()) return explain(status);
  switch (ERR_GET_REASON(static_cast<unsigned long>(status.value()))) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_TLSV1_ALERT_PROTOCOL_VERSION:
      return "what answers there is not taas-run";
    case SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE:  // it does not know the name that the key was offered under
      return "another run listens there";
    case SSL_R_SSLV3_ALERT_ILLEGAL_PARAMETER:
    case SSL_R_TLSV1_ALERT_DECRYPT_ERROR:
      return "wrong secret";
    default:
      return "wrong secret";
  }
}

}  // namespace taas::net
