#pragma once

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/ids.hpp"
#include "store/server.hpp"

namespace taas::node {

/// The store as a node holds it: until its generation begins it only says that this machine can be reached, and where
/// ranks serve a store of their own it finds the free port for that.
class NodeStore {
 public:
  struct Callbacks {
    std::function<void(Rank)> joined;  ///< as store::Observer::on_joined
    std::function<void()> reached;     ///< as store::Observer::on_reached
    std::function<void(std::string text)> remark;
  };

  /// Listens on these numeric addresses, for so many clients at a time; without any there is no store.
  Result<> open(boost::asio::io_context& io, std::vector<std::string> addresses, std::uint16_t port, int most_clients,
                Callbacks callbacks);

  /// 0: there is no store.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Of several addresses only `master_addr` is served, by which all nodes reach this one.
  void begin_generation(const std::string& master_addr);
  void rest();
  /// The port is free again.
  void close() { server_.reset(); }

 private:
  void tell_limit(const Error& why);

  Callbacks callbacks_;
  std::vector<std::string> addresses_;
  std::unique_ptr<store::Server> server_;
  std::uint16_t port_ = 0;
  bool limit_told_ = false;
};

}  // namespace taas::node
