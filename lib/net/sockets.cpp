#include "net/sockets.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>

namespace taas::net {

namespace error = boost::asio::error;
using boost::asio::ip::tcp;

void set_close_on_exec(int native_handle) { ::fcntl(native_handle, F_SETFD, FD_CLOEXEC); }

namespace {

/// After a cut of the network the kernel waits twice as long before each new try; on a link of few small messages it
/// may try six times at even intervals first, so that heartbeats come through soon.
void send_again_soon(int native_handle) {
  const int on = 1;
  ::setsockopt(native_handle, IPPROTO_TCP, TCP_THIN_LINEAR_TIMEOUTS, &on, sizeof on);
}

}  // namespace

void prepare(tcp::socket& socket) {
  set_close_on_exec(socket.native_handle());
  boost::system::error_code ignored;  // a connection that has died meanwhile says so at the first read
  socket.set_option(tcp::no_delay(true), ignored);
  send_again_soon(socket.native_handle());
}

boost::system::error_code open(tcp::socket& socket, const boost::asio::ip::address& address) {
  boost::system::error_code status;
  if (!socket.open(address.is_v6() ? tcp::v6() : tcp::v4(), status)) prepare(socket);
  return status;
}

bool means_closed_by_peer(const boost::system::error_code& status) {
  return status == error::eof || status == error::connection_reset || status == error::broken_pipe ||
         status == boost::asio::ssl::error::stream_truncated;
}

bool means_unknown_name(const boost::system::error_code& status) {
  return status == error::host_not_found || status == error::no_data || status == error::host_not_found_try_again;
}

std::string explain(const boost::system::error_code& status) {
  if (means_closed_by_peer(status)) return "the peer closed the link";
  if (status == error::connection_refused) return "connection refused";
  if (status == error::host_unreachable || status == error::network_unreachable) return "no route to host";
  if (status == error::timed_out) return "timed out";
  if (means_unknown_name(status)) return "no address is known for this name";
  if (status.category() == error::get_ssl_category()) return "the link was tampered with: " + status.message();
  return status.message();
}

}  // namespace taas::net
