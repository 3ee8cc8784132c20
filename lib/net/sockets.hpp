#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/system/error_code.hpp>
#include <string>

namespace taas::net {

/// No child inherits it.
void set_close_on_exec(int native_handle);

/// Close-on-exec; small messages are not held back, and after a cut of the network they are sent again soon.
void prepare(boost::asio::ip::tcp::socket& socket);

/// An opened socket of the address's family.
boost::system::error_code open(boost::asio::ip::tcp::socket& socket, const boost::asio::ip::address& address);

/// The peer's process has ended or closed the connection, as far as this machine was told.
bool means_closed_by_peer(const boost::system::error_code& status);

/// The answer to a question for a name's addresses is that there are none, or that no name server knows.
bool means_unknown_name(const boost::system::error_code& status);

/// Why a connection ended or could not be made, for people.
std::string explain(const boost::system::error_code& status);

}  // namespace taas::net
