#include "node/data/worker_addresses.hpp"

#include <boost/asio/ip/tcp.hpp>

#include "catch.hpp"

namespace worker_addresses_test {

using namespace taas;
using boost::asio::ip::tcp;
using node::WorkerAddresses;

namespace {

run::DataWorker worker_at(std::vector<std::string> addresses, std::uint16_t port) {
  run::DataWorker worker;
  worker.name = "data worker 3";
  worker.node = "b";
  worker.addresses = std::move(addresses);
  worker.port = port;
  return worker;
}

}  // namespace

TEST_CASE("of a machine's addresses the one that answers is found, and forgotten when its workers have gone") {
  boost::asio::io_context io;
  tcp::acceptor there(io, {boost::asio::ip::make_address("127.0.0.2"), 0});
  const auto port = there.local_endpoint().port();
  int found = 0;
  WorkerAddresses addresses(io, {[&] { ++found; }, [](const std::string&) {}});
  CHECK(addresses.of("b").empty());
  addresses.find(worker_at({"127.0.0.3", "127.0.0.2"}, port));
  addresses.find(worker_at({"127.0.0.3", "127.0.0.2"}, port));  // is being looked for
  while (found == 0) io.run_one();
  CHECK(addresses.of("b") == "127.0.0.2");
  addresses.find(worker_at({"127.0.0.3", "127.0.0.2"}, port));  // is known
  io.poll();
  CHECK(found == 1);
  addresses.find(worker_at({}, port));
  CHECK(addresses.of("b").empty());
}

TEST_CASE("a machine that does not answer is named once, and found when it does") {
  boost::asio::io_context io;
  tcp::acceptor there(io);
  there.open(tcp::v4());
  there.bind({boost::asio::ip::make_address("127.0.0.2"), 0});  // held, and nobody listens
  const auto port = there.local_endpoint().port();
  int found = 0;
  std::vector<std::string> remarks;
  WorkerAddresses addresses(io, {[&] { ++found; }, [&](std::string text) { remarks.push_back(std::move(text)); }},
                            std::chrono::milliseconds(20));
  addresses.find(worker_at({"127.0.0.2"}, port));
  while (remarks.empty()) io.run_one();
  CHECK(remarks[0] == "no address of data worker 3 can be reached from here; it is tried again and again");
  there.listen();
  while (found == 0) io.run_one();
  CHECK(remarks.size() == 1);
  CHECK(addresses.of("b") == "127.0.0.2");
}

}  // namespace worker_addresses_test
