#include "data/server/job_queue.hpp"

#include "catch.hpp"

namespace job_queue_test {

using namespace taas::data;

namespace {

Job job(std::uint64_t client, std::uint64_t number, Attempt attempt, std::string digest = "d") {
  return {
      .client = client, .stream = 1, .number = number, .attempt = attempt, .digest = std::move(digest), .payload = {}};
}

std::vector<Attempt> take_all(JobQueue& queue) {
  std::vector<Attempt> taken;
  while (auto next = queue.take()) taken.push_back(next->attempt);
  return taken;
}

}  // namespace

TEST_CASE("the lowest number goes first, over all clients") {
  JobQueue queue;
  for (const auto& each : {job(1, 5, 10), job(2, 3, 11), job(1, 4, 12), job(2, 5, 13)}) queue.add(each);
  CHECK(take_all(queue) == std::vector<Attempt>{11, 12, 10, 13});
}

TEST_CASE("jobs wait for their definition") {
  JobQueue queue;
  queue.add_waiting(job(1, 0, 1, "x"));
  queue.add_waiting(job(2, 1, 2, "y"));
  CHECK(queue.empty());
  CHECK(queue.waiting_client("x") == 1u);
  queue.add_definition("y");
  CHECK(take_all(queue) == std::vector<Attempt>{2});
  CHECK_FALSE(queue.waiting_client("y").has_value());
}

TEST_CASE("jobs whose definition is gone wait for it again") {
  JobQueue queue;
  for (const auto& each : {job(1, 0, 1, "x"), job(1, 1, 2, "y"), job(2, 2, 3, "x")}) queue.add(each);
  queue.remove_definition("x");
  CHECK(queue.waiting_client("x") == 1u);
  CHECK(take_all(queue) == std::vector<Attempt>{2});
  queue.add_definition("x");
  CHECK(take_all(queue) == std::vector<Attempt>{1, 3});
}

TEST_CASE("what is withdrawn, or of a client that is gone, is not taken") {
  JobQueue queue;
  for (Attempt i = 0; i < 4; ++i) queue.add(job(1, i, i));
  queue.add(job(2, 0, 0));
  queue.add_waiting(job(1, 9, 9, "x"));
  CHECK(queue.remove(1, 2));
  CHECK_FALSE(queue.remove(1, 2));
  CHECK(queue.remove(1, 9));
  CHECK_FALSE(queue.waiting_client("x").has_value());
  queue.remove_all_of(2);
  CHECK(take_all(queue) == std::vector<Attempt>{0, 1, 3});
}

}  // namespace job_queue_test
