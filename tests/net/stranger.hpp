#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>

#include "ends.hpp"

/// A plain TCP client that says what it wants and notices when it is turned away.
class Stranger {
 public:
  Stranger(boost::asio::io_context& io, std::uint16_t port) : io_(io), socket_(io) {
    socket_.connect({boost::asio::ip::address_v4::loopback(), port});
    read();
  }

  void say(std::string bytes) {
    auto owned = std::make_shared<std::string>(std::move(bytes));
    boost::asio::async_write(socket_, boost::asio::buffer(*owned), [owned](const auto&, std::size_t) {});
  }
  [[nodiscard]] bool turned_away() const { return turned_away_; }
  void wait_until_turned_away() {
    turn_until(io_, [this] { return turned_away_; });
  }
  [[nodiscard]] const std::string& heard() const { return heard_; }

 private:
  void read() {
    socket_.async_read_some(boost::asio::buffer(chunk_), [this](const auto& status, std::size_t size) {
      if (status == boost::asio::error::operation_aborted) return;
      heard_.append(chunk_.data(), size);
      if (status) {
        turned_away_ = true;
      } else {
        read();
      }
    });
  }

  boost::asio::io_context& io_;
  boost::asio::ip::tcp::socket socket_;
  std::array<char, 4096> chunk_{};
  std::string heard_;
  bool turned_away_ = false;
};
