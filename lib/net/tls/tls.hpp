#pragma once

#include <boost/asio/ssl/context.hpp>
#include <boost/system/error_code.hpp>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "net/secret.hpp"

// Of this folder's own files: it brings in OpenSSL.
namespace taas::net {

enum class Role { kClient, kServer };

/// How TLS is spoken here: version 1.3 only, one cipher suite, the secret as external pre-shared key together with an
/// (EC)DHE exchange; no certificates, session tickets or early data.
class Tls {
 public:
  static Result<std::shared_ptr<Tls>> make(Role role, Secret secret);

  [[nodiscard]] Role role() const { return role_; }
  boost::asio::ssl::context& context() { return context_; }

 private:
  Tls(Role role, Secret secret);
  bool configure();

  Role role_;
  Secret secret_;
  std::string identity_;
  boost::asio::ssl::context context_;

  friend struct PskCallbacks;
};

/// Whether the handshake that has just ended proved the secret: otherwise nothing may be read or sent.
bool has_proved_secret(SSL* connection);

/// Why a handshake failed, for people.
std::string explain_handshake(const boost::system::error_code& status);

}  // namespace taas::net
