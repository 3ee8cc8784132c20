#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "catch.hpp"
#include "store/server.hpp"

/// A server on its own thread.
class RunningServer {
 public:
  explicit RunningServer(taas::store::ServerOptions options = {}) {
    auto server =
        taas::store::Server::listen(io_, options,
                                    {.on_joined = [this](taas::Rank rank) { joined_.push_back(rank); },
                                     .on_refused = [this](const taas::Error& why) { refused_.push_back(why.message); },
                                     .on_reached = [this] { ++reached_; }});
    REQUIRE(server.has_value());
    server_ = std::move(*server);
    port_ = server_->port();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~RunningServer() {
    on_its_thread([this] { server_.reset(); });
    work_.reset();
    thread_.join();
  }

  std::uint16_t port() const { return port_; }
  int connections() {
    return on_its_thread([this] { return server_->connections(); });
  }
  void begin_generation(const std::string& address = {}) {
    on_its_thread([&] { server_->begin_generation(address); });
  }
  void rest() {
    on_its_thread([this] { server_->rest(); });
  }
  std::vector<taas::Rank> joined() {
    return on_its_thread([this] { return joined_; });
  }
  int reached() {
    return on_its_thread([this] { return reached_; });
  }
  std::vector<std::string> refused() {
    return on_its_thread([this] { return refused_; });
  }

  template <class Function>
  std::invoke_result_t<Function> on_its_thread(Function function) {
    std::packaged_task<std::invoke_result_t<Function>()> task(std::move(function));
    auto result = task.get_future();
    boost::asio::post(io_, std::move(task));
    return result.get();
  }

 private:
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_{io_.get_executor()};
  std::unique_ptr<taas::store::Server> server_;
  std::uint16_t port_ = 0;
  std::vector<taas::Rank> joined_;
  std::vector<std::string> refused_;
  int reached_ = 0;
  std::thread thread_;
};
