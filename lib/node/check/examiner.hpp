#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "net/bind.hpp"
#include "net/link.hpp"
#include "node/check/examine.hpp"
#include "run/messages/messages.hpp"

namespace taas {
class Family;
}

namespace taas::node {

/// Answers what is asked of a node before ranks are started there. The look itself is done by a child, which may hang.
class Examiner {
 public:
  using Say = std::function<void(run::AgentMessage)>;

  /// Other nodes can try to reach this one at `listen_address` until the examiner is gone.
  Examiner(boost::asio::io_context& io, Family& family, std::string listen_address, Say say);
  ~Examiner();
  Examiner(const Examiner&) = delete;
  Examiner& operator=(const Examiner&) = delete;

  /// `environment` is that of the child. What it does not tell in the end is told as a refusal.
  void examine(const ExamineWish& wish, const Environment& environment);
  void reach(const run::ReachNodes& wish);

 private:
  struct Trial;
  void answer(run::NodeFacts facts);

  boost::asio::io_context& io_;
  Family& family_;
  std::string listen_address_;
  Say say_;
  std::shared_ptr<Trial> trial_;
  std::vector<net::Acceptor> doors_;
  std::vector<std::unique_ptr<net::Connecting>> probes_;
  std::size_t probing_ = 0;
  std::vector<std::string> unreached_;
};

}  // namespace taas::node
