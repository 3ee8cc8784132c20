#include "data/memory/background_copy.hpp"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <numeric>
#include <vector>

#include "catch.hpp"

namespace background_copy_test {

using namespace taas::data;

namespace {

/// Some memory, and the memory that it is copied into in several parts.
struct Job {
  explicit Job(std::size_t bytes) : source(bytes), target(bytes, 0) { std::iota(source.begin(), source.end(), 1); }
  [[nodiscard]] std::vector<BackgroundCopy::Part> parts() {
    const auto from = std::as_bytes(std::span(source));
    const auto to = std::as_writable_bytes(std::span(target));
    const auto first = source.size() / 3;
    return {{.to = to.data(), .from = from.first(first)},
            {.to = to.data() + first, .from = {}},
            {.to = to.data() + first, .from = from.subspan(first)}};
  }

  std::vector<unsigned char> source;
  std::vector<unsigned char> target;
};

}  // namespace

TEST_CASE("all that was asked for is copied when it is done, small or large") {
  for (const std::size_t bytes : {0, 1, 1000, 524288, 524289, 3'000'001, 20'000'000}) {
    Job job(bytes);
    BackgroundCopy copy(job.parts());
    copy.wait();
    CHECK(copy.is_done());
    CHECK(job.target == job.source);
  }
}

TEST_CASE("a copy is over when nobody has it any more") {
  Job job(20'000'000);
  { const BackgroundCopy copy(job.parts()); }
  CHECK(job.target == job.source);
}

TEST_CASE("a copy without threads is made by who waits for it") {
  Job job(20'000'000);
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(60);
    pthread_attr_t attributes;
    const bool none = ::pthread_attr_init(&attributes) == 0 &&
                      ::pthread_attr_setstacksize(&attributes, std::size_t{1} << 46) == 0 &&  // there is no such stack
                      ::pthread_setattr_default_np(&attributes) == 0;
    if (!none) ::_exit(2);
    BackgroundCopy copy(job.parts());
    copy.wait();
    ::_exit(job.target == job.source ? 0 : 1);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
}

TEST_CASE("a forked child neither waits for a copy of its parent's nor ends it") {
  Job job(20'000'000);
  auto* copy = new BackgroundCopy(job.parts());
  const auto child = ::fork();
  if (child == 0) {
    ::alarm(60);
    copy->wait();
    delete copy;
    ::_exit(0);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  delete copy;
  CHECK(job.target == job.source);
}

}  // namespace background_copy_test
