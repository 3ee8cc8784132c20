#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "base/clock.hpp"
#include "base/timer.hpp"
#include "net/link.hpp"
#include "run/messages/messages.hpp"

namespace taas::node {

/// By which address this node reaches each machine with data workers: of a machine's addresses the first that answers,
/// which differs from node to node. One that none answers for is tried again and again.
class WorkerAddresses {
 public:
  struct Callbacks {
    std::function<void()> found;  ///< one more is known
    std::function<void(std::string text)> remark;
  };

  /// `again` after no address has answered, all are tried once more.
  WorkerAddresses(boost::asio::io_context& io, Callbacks callbacks, Duration again = std::chrono::seconds(2))
      : io_(io), callbacks_(std::move(callbacks)), again_(again) {}

  /// Looks for the worker's machine, unless that is known or being looked for; a worker without addresses has gone, and
  /// its machine is forgotten.
  void find(const run::DataWorker& worker);
  /// Empty: not known yet.
  [[nodiscard]] std::string of(const std::string& node) const;

 private:
  struct Found {
    std::string address;  // empty: none has answered yet
    std::unique_ptr<net::Connecting> probing;
    std::unique_ptr<Timer> again;
    bool told = false;  // that none can be reached
  };
  void probe(const run::DataWorker& worker);
  void probed(const run::DataWorker& worker, std::vector<std::string> reached);

  boost::asio::io_context& io_;
  Callbacks callbacks_;
  Duration again_;
  std::map<std::string, Found> nodes_;  // by Hello::instance
};

}  // namespace taas::node
