#include "storage/publishing/publish_queue.hpp"

#include "catch.hpp"

namespace publish_queue_test {

using namespace taas::storage;

namespace {

Publication publication(const std::string& name, std::int64_t size) {
  Publication made;
  made.name = name;
  made.seen.size = size;
  return made;
}

}  // namespace

TEST_CASE("a name that comes again keeps its place, with its newest content") {
  PublishQueue queue;
  CHECK_FALSE(queue.take());
  queue.add(publication("a", 1));
  queue.add(publication("b", 2));
  queue.add(publication("a", 3));
  const auto first = queue.take();
  REQUIRE(first);
  CHECK(first->name == "a");
  CHECK(first->seen.size == 3);
  CHECK(queue.take()->name == "b");
  CHECK_FALSE(queue.take());
}

TEST_CASE("a name that was taken may come again") {
  PublishQueue queue;
  queue.add(publication("a", 1));
  CHECK(queue.take()->seen.size == 1);
  queue.add(publication("a", 2));
  CHECK(queue.take()->seen.size == 2);
  CHECK_FALSE(queue.take());
}

}  // namespace publish_queue_test
