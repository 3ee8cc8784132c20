#include "data/transport/handshake.hpp"

#include "data/transport/challenge.hpp"
#include "data/transport/openssl_call.hpp"
#include "data/transport/sockets.hpp"
#include "data/transport/tls_transport.hpp"

namespace taas::data {

Result<Handshake> Handshake::make(net::Role role, net::Secret secret, Encryption encryption) {
  if (encryption == Encryption::kPlain) return Handshake(role, std::move(secret), nullptr);
  const OpensslCall call;
  auto tls = net::Tls::make(role, secret);
  if (!tls) return tls.error();
  auto* made = tls->get();
  auto release = [kept = std::move(*tls)](net::Tls*) mutable {
    const OpensslCall call_of_release;
    kept.reset();
  };
  return Handshake(role, std::move(secret), std::shared_ptr<net::Tls>(made, std::move(release)));
}

Result<std::unique_ptr<Transport>> Handshake::run(Fd socket, AddressFamily family, const Wakeup& wakeup,
                                                  Duration patience) const {
  const auto deadline = steady_now() + patience;
  if (family == AddressFamily::kUnix && !is_same_user(socket)) return unavailable_error("a process of another user");
  if (family == AddressFamily::kTcp && tls_) return make_tls_transport(std::move(socket), tls_, wakeup, deadline);
  auto transport =
      family == AddressFamily::kUnix ? make_unix_transport(std::move(socket)) : make_tcp_transport(std::move(socket));
  if (const auto proved = prove_to_each_other(*transport, role_, secret_, wakeup, deadline); !proved) {
    return proved.error();
  }
  return transport;
}

}  // namespace taas::data
