#include "data/schedule/streams.hpp"

#include <algorithm>
#include <iterator>

#include "catch.hpp"

namespace streams_test {

using namespace taas::data;

TEST_CASE("numbers go on from the first one, and the loop takes them in order") {
  Streams streams;
  auto& stream = streams.open({7, 40});
  stream.add(kNobody, false);
  streams.open({7, 41}).add(2, true);
  CHECK(stream.size() == 2);
  CHECK(stream.task(41).preferred == 2);
  CHECK(stream.waits());
  stream.task(40).here = true;
  CHECK_FALSE(stream.waits());
  stream.remove_first();
  CHECK(stream.head() == 41);
  CHECK(stream.waits());
}

TEST_CASE("what nobody has is queued by whom it is for, and apart once it was returned") {
  Stream stream(0);
  stream.add(kNobody, false);
  stream.add(3, true);
  stream.add(3, true);
  REQUIRE(stream.queues().size() == 2);
  CHECK(stream.queues().at({true, 3}) == Stream::Numbers{1, 2});
  stream.dequeue(0);
  CHECK(stream.queues().size() == 1);
  stream.task(0).returners = {1};
  stream.enqueue(0);
  CHECK(stream.returned() == Stream::Numbers{0});
  CHECK(stream.task(0).returned_by(1));
  CHECK_FALSE(stream.task(0).returned_by(0));
  for (std::uint64_t number : {0, 1, 2}) stream.dequeue(number);
  CHECK_FALSE(stream.has_queued());
}

TEST_CASE("streams share the credits, but each may send what its loop takes next") {
  Streams streams;
  auto& one = streams.open({1, 0});
  auto& other = streams.open({2, 0});
  for (int i = 0; i < 3; ++i) one.add(kNobody, false);
  streams.set_credits(2);
  CHECK(streams.window(one) == 2);
  streams.use(one, 2);
  CHECK(streams.may_send(other, 0));
  CHECK_FALSE(streams.may_send(other, 1));
  streams.close(1);
  CHECK(streams.may_send(other, 1));
  CHECK(streams.find(1) == nullptr);
}

TEST_CASE("a loop that waits comes first, then who holds less, then who was served longer ago") {
  Streams streams;
  for (StreamId id : {1, 2, 3, 4, 5}) streams.open({id, 0}).add(kNobody, false);
  streams.at(1).task(0).here = true;  // its loop can take something
  streams.use(streams.at(2), 1);
  streams.at(3).note_served(9);
  streams.at(5).dequeue(0);  // nothing of it is queued
  std::vector<StreamId> order;
  auto turns = streams.turns();
  std::transform(turns.begin(), turns.end(), std::back_inserter(order), [](const Turn& turn) { return turn.stream; });
  CHECK(order == std::vector<StreamId>{4, 3, 2, 1});
}

TEST_CASE("homes of pinned tasks") {
  Stream stream(0);
  CHECK(stream.home_of(1) == kNobody);
  stream.set_home(1, 2);
  stream.set_home(0, 2);
  CHECK(stream.home_of(1) == 2);
  CHECK(stream.count_hosted(3) == std::vector<int>{0, 0, 2});
}

}  // namespace streams_test
