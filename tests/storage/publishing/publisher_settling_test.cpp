// What is published at the end of a run, what is left, and what the run is told of it.
#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>

#include "base/fd.hpp"
#include "catch.hpp"
#include "publisher_output.hpp"
#include "storage/publishing/file_state.hpp"
#include "storage/publishing/publisher.hpp"
#include "storage/refused_calls.hpp"
#include "storage/small_disk.hpp"

namespace publisher_settling_test {

using namespace taas;
using namespace taas::storage;
using publisher_output::Output;
namespace fs = std::filesystem;

TEST_CASE("a run that is over before the watch begins publishes at its end") {
  Output output;
  output.publisher.reset();
  output.write("model.pt", "text");
  auto options = output.options();
  options.watch_after = std::chrono::hours(1);
  output.restart(options);
  CHECK(output.settle() == "");
  CHECK(output.published("model.pt") == "text");
}

TEST_CASE("settling publishes what is left, temporary names too, and removes the staging folder") {
  Output output;
  output.write("model.pt", "model");
  output.write("sub/.hidden", "hidden");
  output.write("notes.tmp", "notes");
  CHECK(output.settle().empty());
  CHECK(output.published("model.pt") == "model");
  CHECK(output.published("sub/.hidden") == "hidden");
  CHECK(output.published("notes.tmp") == "notes");
  CHECK(output.publisher->published() == 3);
  CHECK_FALSE(fs::exists(output.staging));
}

TEST_CASE("what appears while the rest is being published at the end is published too") {
  Output output;
  int looks = 0;
  auto options = output.options();
  options.before_look = [&] {
    if (++looks != 2) return;  // the first look's findings have just been published
    output.write("late.pt", "late");
    output.write("model.pt", "rewritten");
  };
  output.publisher.reset();
  output.write("model.pt", "model");
  options.watch_after = std::chrono::hours(1);  // the end alone publishes
  output.restart(options);
  CHECK(output.settle().empty());
  CHECK(looks > 2);
  CHECK(output.published("late.pt") == "late");
  CHECK(output.published("model.pt") == "rewritten");
  CHECK_FALSE(fs::exists(output.staging));
}

TEST_CASE("what a stranger still writes at the end stays, is named, and the run is told") {
  Output output;
  if (learn_refusal(output.place()) == Refusal::kMeansNothing) SKIP_TEST("this file system has no leases");
  output.write("model.pt", "model");
  Fd writer(::open((output.staging + "/log").c_str(), O_WRONLY | O_CREAT, 0644));
  CHECK_THAT(output.settle(),
             ContainsSubstring("log: a process still has it open") && ContainsSubstring(output.staging));
  CHECK(output.published("model.pt") == "model");
  CHECK_FALSE(output.has("log"));
  CHECK(fs::exists(output.staging + "/log"));
}

TEST_CASE("a stranger who writes without end does not keep the run for ever") {
  Output output;
  std::atomic<int> count{0};
  auto options = output.options();
  options.before_look = [&] { output.write(std::to_string(++count), ""); };
  output.restart(options);
  const auto result = output.settle();
  CHECK_THAT(result, ContainsSubstring("cannot publish " + std::to_string(count)));
  CHECK(output.has("1"));
  CHECK(fs::exists(output.staging + "/" + std::to_string(count)));
}

TEST_CASE("what cannot be published is not removed: pipes and sockets") {
  Output output;
  output.write("model.pt", "model");
  REQUIRE(::mkfifo((output.staging + "/pipe").c_str(), 0600) == 0);
  CHECK(output.settle().empty());
  CHECK(fs::exists(output.staging + "/pipe"));
  CHECK_FALSE(fs::exists(output.staging + "/model.pt"));
}

TEST_CASE("on a file system that refuses leases as it likes, output is published all the same") {
  without_leases([] {
    Output output;
    output.write("early.pt", "one");
    CHECK(output.runs_until([&] { return output.has("early.pt"); }));
    output.ended(WriterEnd::kBadly);
    output.write("last.pt", "two");
    CHECK(output.settle() == "");
    CHECK(output.published("early.pt") == "one");
    CHECK(output.published("last.pt") == "two");
    CHECK_FALSE(fs::exists(output.staging));
  });
}

TEST_CASE("settling with nothing written is well") {
  Output output;
  CHECK(output.settle().empty());
  CHECK(output.publisher->published() == 0);
}

TEST_CASE("a staged file that is removed leaves its published twin") {
  Output output;
  output.write("a", "text");
  REQUIRE(output.runs_until([&] { return output.has("a"); }));
  fs::remove(output.staging + "/a");
  CHECK(output.settle().empty());
  CHECK(output.published("a") == "text");
}

TEST_CASE("what cannot be published is named and the run is told") {
  SmallDisk disk("size=1m");
  if (!disk.mounted()) SKIP_TEST("a small tmpfs cannot be mounted here (needs root)");
  Output output(disk.path());
  output.write("big.pt", std::string(2'000'000, 'b'));
  REQUIRE(output.runs_until([&] { return !output.errors.empty(); }));
  CHECK_THAT(output.errors.front(), ContainsSubstring("big.pt") && ContainsSubstring("No space left"));
  SECTION("also at the end, and the staged file is kept") {
    CHECK_THAT(output.settle(), ContainsSubstring(disk.path() + "/big.pt"));
    CHECK(fs::exists(output.staging + "/big.pt"));
  }
  SECTION("unless it can be published after all") {
    output.write("big.pt", "small");
    CHECK(output.settle().empty());
    CHECK(output.published("big.pt") == "small");
  }
}

}  // namespace publisher_settling_test
