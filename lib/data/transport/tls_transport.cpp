#include "data/transport/tls_transport.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <boost/asio/ssl/error.hpp>
#include <cerrno>
#include <optional>

#include "data/transport/openssl_call.hpp"
#include "data/transport/receive_low_watermark.hpp"
#include "data/transport/tls_socket.hpp"

namespace taas::data {

namespace {

struct Free {
  void operator()(SSL* connection) const {
    const OpensslCall call;
    ::SSL_free(connection);
  }
};

SSL* make_connection(net::Tls& tls) {
  const OpensslCall call;
  return ::SSL_new(tls.context().native_handle());
}

constexpr std::size_t kLargestRecord = std::size_t{17} << 10;  // OpenSSL may have so much of what is awaited already

class TlsTransport : public Transport {
 public:
  TlsTransport(Fd socket, std::shared_ptr<net::Tls> tls)
      : socket_(std::move(socket)), tls_(std::move(tls)), ssl_(make_connection(*tls_)) {}

  Result<> shake_hands(const Wakeup& wakeup, Instant deadline);
  Result<std::size_t> read(std::span<std::byte> into) override;
  Result<std::size_t> write(std::span<const iovec> parts) override;
  [[nodiscard]] bool needs_checksum() const override { return false; }  // every record has one
  void expect(std::size_t bytes) override { low_water_.expect(socket_.fd(), bytes - std::min(bytes, kLargestRecord)); }
  Result<> flush() override;
  [[nodiscard]] bool is_flushed() const override { return socket_.is_flushed(); }
  [[nodiscard]] const Fd& socket() const override { return socket_.fd(); }

 private:
  bool prepare();
  /// What a call of OpenSSL that did not succeed wants to wait for; none: it failed.
  [[nodiscard]] std::optional<Ready> wanted(int outcome) const;
  [[nodiscard]] Error failure() const;

  TlsSocket socket_;
  std::shared_ptr<net::Tls> tls_;
  std::unique_ptr<SSL, Free> ssl_;
  ReceiveLowWatermark low_water_;
  bool is_up_ = false;  ///< the handshake is over, and proved the secret
};

bool TlsTransport::prepare() {
  const OpensslCall call;
  auto* bio = ssl_ ? socket_.make_bio() : nullptr;
  if (!bio) return false;
  ::SSL_set_bio(ssl_.get(), bio, bio);
  ::SSL_set_mode(ssl_.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  tls_->role() == net::Role::kClient ? ::SSL_set_connect_state(ssl_.get()) : ::SSL_set_accept_state(ssl_.get());
  return true;
}

std::optional<Ready> TlsTransport::wanted(int outcome) const {
  const int status = ::SSL_get_error(ssl_.get(), outcome);
  if (status == SSL_ERROR_WANT_READ) return Ready::kRead;
  if (status == SSL_ERROR_WANT_WRITE) return Ready::kWrite;
  return {};
}

Error TlsTransport::failure() const {
  const auto code = ::ERR_get_error();
  ::ERR_clear_error();
  if (code == 0 || ERR_SYSTEM_ERROR(code)) return unavailable_error("the peer closed the link");
  const boost::system::error_code status(static_cast<int>(code), boost::asio::error::get_ssl_category());
  if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) return unavailable_error("the peer closed the link");
  if (!is_up_) return protocol_error(net::explain_handshake(status));
  return unavailable_error("the link was tampered with: " + status.message());
}

Result<> TlsTransport::shake_hands(const Wakeup& wakeup, Instant deadline) {
  if (!prepare()) return unavailable_error("OpenSSL has no memory for a link");
  bool proved = false;
  for (;;) {
    std::optional<Ready> ready;
    {
      const OpensslCall call;
      ::ERR_clear_error();
      const int outcome = ::SSL_do_handshake(ssl_.get());
      proved = outcome == 1 && net::has_proved_secret(ssl_.get());
      if (outcome == 1) break;
      ready = wanted(outcome);
      if (!ready) return failure();
    }
    if (!wait_until_ready(socket_.fd(), *ready, wakeup, deadline - steady_now()))
      return unavailable_error("no answer in time");
  }
  if (!proved) return protocol_error("wrong secret");
  is_up_ = true;
  return {};
}

Result<std::size_t> TlsTransport::read(std::span<std::byte> into) {
  const OpensslCall call;
  std::size_t all = 0;
  while (all < into.size()) {
    std::size_t got = 0;
    ::ERR_clear_error();
    const int outcome = ::SSL_read_ex(ssl_.get(), into.data() + all, into.size() - all, &got);
    if (outcome != 1 && all == 0 && !wanted(outcome)) return failure();
    if (outcome != 1) break;
    all += got;
  }
  return all;
}

Result<std::size_t> TlsTransport::write(std::span<const iovec> parts) {
  const OpensslCall call;
  std::size_t all = 0;
  for (const auto& part : parts) {
    for (std::size_t done = 0; done < part.iov_len;) {
      std::size_t sent = 0;
      ::ERR_clear_error();
      const int outcome =
          ::SSL_write_ex(ssl_.get(), static_cast<const std::byte*>(part.iov_base) + done, part.iov_len - done, &sent);
      if (outcome != 1 && all == 0 && !wanted(outcome)) return failure();
      if (outcome != 1) return all;
      done += sent;
      all += sent;
    }
  }
  return all;
}

Result<> TlsTransport::flush() {
  if (!socket_.flush()) return unavailable_error("the peer closed the link");
  return {};
}

}  // namespace

Result<std::unique_ptr<Transport>> make_tls_transport(Fd socket, std::shared_ptr<net::Tls> tls, const Wakeup& wakeup,
                                                      Instant deadline) {
  auto transport = std::make_unique<TlsTransport>(std::move(socket), std::move(tls));
  if (const auto done = transport->shake_hands(wakeup, deadline); !done) return done.error();
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace taas::data
