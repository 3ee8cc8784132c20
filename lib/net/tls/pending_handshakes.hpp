#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>

#include "net/tls/tls_link.hpp"

// Of this folder's own files: it brings in OpenSSL.
namespace taas::net {

struct StrangersOptions {
  std::chrono::milliseconds patience;
  std::chrono::milliseconds crowded_patience;  ///< while there are `most` of them
  std::size_t most;
};

/// Connections that have not proved the secret yet. Who takes too long is closed, the longest waiting first.
class PendingHandshakes : public std::enable_shared_from_this<PendingHandshakes> {
 public:
  struct Callbacks {
    std::function<void(std::unique_ptr<Link>)> on_link;
    std::function<void(boost::asio::ip::tcp::socket)> on_store_client;  ///< may be empty: nobody is one
    std::function<void()> on_left;                                      ///< there may be room again
  };

  PendingHandshakes(const boost::asio::any_io_executor& executor, std::shared_ptr<Tls> tls, StrangersOptions options,
                    Callbacks callbacks);
  ~PendingHandshakes();
  PendingHandshakes(const PendingHandshakes&) = delete;
  PendingHandshakes& operator=(const PendingHandshakes&) = delete;

  [[nodiscard]] bool full() const { return waiting_.size() >= options_.most; }
  void add(boost::asio::ip::tcp::socket socket);

 private:
  using Time = std::chrono::steady_clock::time_point;
  struct Stranger {
    std::shared_ptr<boost::asio::ip::tcp::socket> socket;  ///< until it has said something
    std::shared_ptr<TlsLink> link;                         ///< from then on
    Time since;
    void abandon() const;
  };
  using Place = std::list<Stranger>::iterator;

  void hear(Place place);
  void leave(Place place, bool proved);
  void watch();
  void expire();
  [[nodiscard]] Time first_deadline() const;

  std::shared_ptr<Tls> tls_;
  StrangersOptions options_;
  Callbacks callbacks_;
  std::list<Stranger> waiting_;
  boost::asio::steady_timer timer_;
};

}  // namespace taas::net
