#include "node/store_passage.hpp"

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <deque>

#include "catch.hpp"
#include "run_until.hpp"

namespace store_passage_test {

using boost::asio::ip::tcp;
using taas::node::MeetingPlace;
using taas::node::StorePassages;

namespace {

/// Clients that are led to a store, which here says to them what a test lets it say.
struct Passages {
  explicit Passages(std::size_t most) : passages(most) {}

  tcp::socket& come() {
    auto& client = clients.emplace_back(io);
    client.connect(meeting.local_endpoint());
    passages.lead(meeting.accept(), {"127.0.0.1", store.local_endpoint().port()});
    return client;
  }
  /// One that has come, in the order of their coming.
  tcp::socket& connected() { return at_store.emplace_back(store.accept()); }

  /// What the client has when the store has said a byte to it.
  bool hears(tcp::socket& client, tcp::socket& said_by) {
    boost::asio::write(said_by, boost::asio::buffer("!", 1));
    return !ends(client);
  }
  bool ends(tcp::socket& client) {
    bool read = false;
    bool ended = false;
    char byte = 0;
    boost::asio::async_read(client, boost::asio::buffer(&byte, 1),
                            [&](const boost::system::error_code& status, std::size_t) {
                              read = true;
                              ended = status.failed();
                            });
    taas::run_until(io, [&] { return read; });
    return ended;
  }

  boost::asio::io_context io;
  tcp::acceptor meeting{io, {boost::asio::ip::address_v4::loopback(), 0}};
  tcp::acceptor store{io, {boost::asio::ip::address_v4::loopback(), 0}};
  std::deque<tcp::socket> clients;
  std::deque<tcp::socket> at_store;
  StorePassages passages;
};

}  // namespace

TEST_CASE("the client that has waited longest for the store makes room, one that has been answered does not") {
  Passages all(2);
  auto& first = all.come();
  auto& with_first = all.connected();
  CHECK(all.hears(first, with_first));
  auto& silent = all.come();
  all.connected();
  auto& third = all.come();
  auto& with_third = all.connected();
  CHECK(all.passages.count() == 2);
  CHECK(all.ends(silent));
  CHECK(all.hears(third, with_third));
  CHECK(all.ends(all.come()));
  CHECK(all.hears(first, with_first));
}

TEST_CASE("who leaves makes room") {
  Passages all(1);
  auto& first = all.come();
  auto& with_first = all.connected();
  CHECK(all.hears(first, with_first));
  first.close();
  CHECK(all.ends(with_first));
  CHECK(all.passages.count() == 0);
  auto& second = all.come();
  CHECK(all.hears(second, all.connected()));
}

TEST_CASE("ranks are sent to where nodes met if all of them reach it by one address") {
  const MeetingPlace at_a_name{{"10.0.0.1", "fd00::1", "127.0.0.1"}, 29500};
  CHECK(at_a_name.address_for("10.0.0.1") == "10.0.0.1");
  CHECK(at_a_name.address_for("fd00::1") == "fd00::1");
  CHECK(at_a_name.address_for("10.1.0.1").empty());
  const MeetingPlace on_loopback{{"127.0.0.1", "::1"}, 29500};
  CHECK(on_loopback.address_for("10.0.0.1") == "127.0.0.1");
  CHECK(MeetingPlace{}.address_for("10.0.0.1").empty());
}

}  // namespace store_passage_test
