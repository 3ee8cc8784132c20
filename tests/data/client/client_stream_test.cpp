#include "data/client/client_stream.hpp"

#include <vector>

#include "catch.hpp"

namespace client_stream_test {

using namespace taas::data;

namespace {

Batch batch_in(std::vector<std::byte>& bytes) {
  Batch batch;
  batch.payload = bytes;
  return batch;
}

}  // namespace

TEST_CASE("batches are taken in the order of their tasks, however they come") {
  ClientStream stream({.digest = "d"});
  CHECK(stream.submit("first") == 0);
  CHECK(stream.submit("second") == 1);
  CHECK(*stream.payload(1) == "second");
  std::vector<std::byte> bytes(8);
  stream.keep(1, batch_in(bytes));
  CHECK_FALSE(stream.has_next());
  stream.keep(0, Raised{});
  CHECK(stream.has_next());
  Statistics totals;
  CHECK(std::holds_alternative<Raised>(stream.take(totals)));
  CHECK(stream.next() == 1);
  CHECK(std::holds_alternative<Batch>(stream.take(totals)));
}

TEST_CASE("what is here counts as buffered, what was taken as a batch, and only batches do") {
  ClientStream stream({.digest = "d"});
  stream.submit("");
  stream.submit("");
  std::vector<std::byte> bytes(8);
  stream.keep(0, batch_in(bytes));
  stream.keep(1, Raised{});
  CHECK(stream.statistics().buffered_bytes == 8);
  CHECK(stream.statistics().waiting == 2);
  Statistics totals;
  stream.take(totals);
  stream.take(totals);
  for (const auto& counted : {stream.statistics(), totals}) {
    CHECK(counted.batches == 1);
    CHECK(counted.bytes == 8);
    CHECK(counted.buffered_bytes == 0);
    CHECK(counted.waiting == 0);
  }
}

TEST_CASE("a task that is sent again is hedged") {
  ClientStream stream({.digest = "d"});
  stream.submit("");
  CHECK(stream.note_sent(0));
  CHECK_FALSE(stream.note_sent(0));
  CHECK(stream.statistics().hedged == 1);
}

TEST_CASE("only the next task can be awaited, until it is taken") {
  ClientStream stream({.digest = "d"});
  stream.submit("");
  CHECK_FALSE(stream.is_awaited(0));
  CHECK(stream.begin_to_wait());
  CHECK_FALSE(stream.begin_to_wait());
  CHECK(stream.is_awaited(0));
  CHECK_FALSE(stream.is_awaited(1));
  stream.keep(0, Raised{});
  Statistics totals;
  stream.take(totals);
  CHECK_FALSE(stream.is_awaited(1));
}

TEST_CASE("why a task cannot be made is what the last worker said of it") {
  ClientStream stream({.digest = "d"});
  stream.submit("");
  CHECK(stream.why_returned(0) == "no data worker can make it");
  stream.note_returned(0, "no memory");
  CHECK(stream.why_returned(0) == "no memory");
}

}  // namespace client_stream_test
