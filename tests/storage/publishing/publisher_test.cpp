#include "storage/publishing/publisher.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

#include "base/files.hpp"
#include "catch.hpp"
#include "storage/child_process.hpp"
#include "storage/liveness.hpp"
#include "storage/publishing/file_state.hpp"
#include "storage/refused_calls.hpp"
#include "storage/small_disk.hpp"
#include "storage/temporary_folder.hpp"

namespace publisher_test {

using namespace taas;
using namespace taas::storage;
namespace fs = std::filesystem;

namespace {

/// A publisher over real folders. `alive` is what it is told of the writers.
struct Output {
  TemporaryFolder folder;
  std::string staging = folder / "run/.staging";
  std::string files = folder / "run/output";
  boost::asio::io_context io;
  std::mutex mutex;  // the publisher asks on a thread of its own
  std::function<bool()> alive = [] { return true; };
  std::vector<std::string> errors;
  std::unique_ptr<Publisher> publisher;

  explicit Output(std::string other_files = {}) {
    if (!other_files.empty()) files = std::move(other_files);
    fs::create_directories(staging);
    fs::create_directories(files);
    PublisherOptions options;
    options.staging = staging;
    options.files = files;
    options.writers_alive = [this] {
      std::lock_guard lock(mutex);
      return alive();
    };
    options.on_error = [this](const Error& error) { errors.push_back(error.message); };
    publisher = Publisher::start(io, std::move(options));
  }

  void ask_about_writers(std::function<bool()> ask) {
    std::lock_guard lock(mutex);
    alive = std::move(ask);
  }

  void write(const std::string& name, const std::string& text) { write_text(staging + "/" + name, text); }
  [[nodiscard]] std::string published(const std::string& name) const { return read_text(files + "/" + name); }
  [[nodiscard]] bool has(const std::string& name) const { return fs::exists(fs::symlink_status(files + "/" + name)); }

  template <class Condition>
  bool runs_until(Condition condition) {
    // What the publisher's own thread has done is not always told to the loop.
    auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      io.restart();
      io.run_one_for(std::chrono::milliseconds(1));
    }
    return condition();
  }
  std::string settle() {
    std::optional<std::string> result;
    publisher->settle([&](std::string error) { result = std::move(error); });
    REQUIRE(runs_until([&] { return result.has_value(); }));
    return *result;
  }
  std::vector<std::string> abandon() {
    std::optional<std::vector<std::string>> result;
    publisher->abandon([&](std::vector<std::string> names) { result = std::move(names); });
    REQUIRE(runs_until([&] { return result.has_value(); }));
    return *result;
  }
};

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("a file is published when its writer closes it, while the run goes on") {
  Output output;
  Fd writer(::open((output.staging + "/model.pt").c_str(), O_WRONLY | O_CREAT, 0644));
  REQUIRE(write_all(writer, "half").has_value());
  output.write("other", "text");
  REQUIRE(output.runs_until([&] { return output.has("other"); }));
  CHECK_FALSE(output.has("model.pt"));
  REQUIRE(write_all(writer, "whole").has_value());
  writer.reset();
  REQUIRE(output.runs_until([&] { return output.has("model.pt"); }));
  CHECK(output.published("model.pt") == "halfwhole");
  CHECK(read_text(output.staging + "/model.pt") == "halfwhole");
  CHECK(output.runs_until([&] { return output.publisher->published() == 2; }));
}

TEST_CASE("what was written before the watch begins is published when it begins") {
  Output output;
  output.publisher.reset();
  output.write("early", "text");
  PublisherOptions options{output.staging, output.files, [] { return true; }, {}, {}, std::chrono::milliseconds(20)};
  output.publisher = Publisher::start(output.io, options);
  REQUIRE(output.runs_until([&] { return output.has("early"); }));
  CHECK(output.published("early") == "text");
}

TEST_CASE("a run that is over before the watch begins publishes at its end") {
  Output output;
  output.publisher.reset();
  output.write("model.pt", "text");
  PublisherOptions options{output.staging, output.files, [] { return true; }, {}, {}, std::chrono::hours(1)};
  output.publisher = Publisher::start(output.io, options);
  CHECK(output.settle() == "");
  CHECK(output.published("model.pt") == "text");
}

TEST_CASE("files in new folders and renamed files are published") {
  Output output;
  output.write("checkpoints/step-5/model.pt", "five");
  output.write("best.tmp", "best");
  fs::rename(output.staging + "/best.tmp", output.staging + "/best.pt");
  fs::create_symlink("checkpoints/step-5", output.staging + "/last");
  REQUIRE(output.runs_until(
      [&] { return output.has("checkpoints/step-5/model.pt") && output.has("best.pt") && output.has("last"); }));
  CHECK(output.published("last/model.pt") == "five");
  CHECK_FALSE(output.has("best.tmp"));
}

TEST_CASE("a writer killed in the middle publishes nothing") {
  Output output;
  auto path = output.staging + "/model.pt";
  ChildProcess child([&] {
    int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
    [[maybe_unused]] auto count = ::write(fd, "half", 4);
  });
  REQUIRE(child.done());
  output.ask_about_writers([&] { return process_is_alive(child.pid()); });
  output.write("whole", "text");
  REQUIRE(output.runs_until([&] { return output.has("whole"); }));
  child.kill();
  child.wait_dead();
  CHECK(output.abandon() == Names{"model.pt"});
  CHECK_FALSE(output.has("model.pt"));

  SECTION("nor does the good end of a later generation") {
    output.ask_about_writers([] { return true; });
    output.write("new", "text");
    CHECK(output.settle().empty());
    CHECK(output.has("new"));
    CHECK_FALSE(output.has("model.pt"));
    CHECK(fs::exists(path));
  }
  SECTION("until a later generation writes it anew") {
    output.ask_about_writers([] { return true; });
    output.write("model.pt", "all of it");
    CHECK(output.settle().empty());
    CHECK(output.published("model.pt") == "all of it");
    CHECK_FALSE(fs::exists(output.staging));
  }
}

TEST_CASE("the event of a dying writer's close publishes nothing") {
  Output output;
  std::atomic<bool> asked{false};
  output.ask_about_writers([&] {
    asked = true;
    return false;
  });
  output.write("model.pt", "who knows");
  REQUIRE(output.runs_until([&] { return asked.load(); }));
  CHECK(output.abandon() == Names{"model.pt"});

  output.ask_about_writers([] { return true; });
  output.write("later", "text");
  REQUIRE(output.runs_until([&] { return output.has("later"); }));
  CHECK_FALSE(output.has("model.pt"));
}

TEST_CASE("whoever opens the final name finds one whole content") {
  Output output;
  constexpr std::size_t kSize = 300'000;
  std::atomic<bool> stop{false};
  std::atomic<int> torn{0}, seen{0};
  std::thread reader([&] {
    for (bool last = false; !last;) {
      last = stop;  // once more then: on a busy machine it may not have had a turn before
      auto text = read_file(output.files + "/model.pt");
      if (!text) continue;
      ++seen;
      bool whole = text->size() == kSize && text->find_first_not_of(text->front()) == std::string::npos;
      if (!whole) ++torn;
    }
  });
  std::thread writer([&] {
    for (int i = 0; i < 100; ++i) output.write("model.pt", std::string(kSize, static_cast<char>('0' + i % 50)));
    output.write("finished", "");
  });
  bool finished = output.runs_until([&] { return output.has("finished"); });
  writer.join();
  auto error = output.settle();
  stop = true;
  reader.join();
  CHECK(finished);
  CHECK(error.empty());
  CHECK(seen > 0);
  CHECK(torn == 0);
  CHECK(output.published("model.pt") == std::string(kSize, static_cast<char>('0' + 99 % 50)));
}

TEST_CASE("settling publishes what is left, temporary names too, and removes the staging folder") {
  Output output;
  output.ask_about_writers([] { return false; });
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
  PublisherOptions options;
  options.staging = output.staging;
  options.files = output.files;
  options.before_look = [&] {
    if (++looks != 2) return;  // the first look's findings have just been published
    output.write("late.pt", "late");
    output.write("model.pt", "rewritten");
  };
  output.publisher.reset();
  output.write("model.pt", "model");
  options.watch_after = std::chrono::hours(1);  // the end alone publishes
  output.publisher = Publisher::start(output.io, options);
  CHECK(output.settle().empty());
  CHECK(looks > 2);
  CHECK(output.published("late.pt") == "late");
  CHECK(output.published("model.pt") == "rewritten");
  CHECK_FALSE(fs::exists(output.staging));
}

TEST_CASE("what a stranger still writes at the end stays, is named, and the run is told") {
  Output output;
  if (learn_refusal(output.folder.path()) == Refusal::kMeansNothing) SKIP_TEST("this file system has no leases");
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
  PublisherOptions options;
  options.staging = output.staging;
  options.files = output.files;
  options.before_look = [&] { output.write(std::to_string(++count), ""); };
  output.publisher = Publisher::start(output.io, options);
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
    output.ask_about_writers([] { return false; });
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

TEST_CASE("temporary names are told by their form") {
  for (const auto* name : {".hidden", "a.tmp", "a.part", "a.tmp.123", ".cache/a", "x.tmp/a"})
    CHECK(is_temporary_name(name));
  for (const auto* name : {"a", "model.pt", "tmp", "a.tmpx", "sub/model.pt", "part"})
    CHECK_FALSE(is_temporary_name(name));
}

TEST_CASE("each publication is told in the event loop, again when a file was rewritten") {
  Output output;
  Names told;
  PublisherOptions options{output.staging, output.files};
  options.on_published = [&told](const std::string& name) { told.push_back(name); };
  output.publisher = Publisher::start(output.io, options);
  output.write("a", "one");
  REQUIRE(output.runs_until([&] { return told.size() == 1; }));
  output.write("a", "other");
  REQUIRE(output.runs_until([&] { return told.size() == 2; }));
  output.write("b.tmp", "text");
  CHECK(output.settle().empty());
  CHECK(told == Names{"a", "a", "b.tmp"});  // all before the end is told
}

TEST_CASE("files are published to another folder from some moment on") {
  Output output;
  output.write("a", "one");
  REQUIRE(output.runs_until([&] { return output.publisher->published() == 1; }));
  auto later = output.folder / "run/.delivered/1";
  output.publisher->publish_to(later);
  output.write("b", "two");
  CHECK(output.settle().empty());
  CHECK(output.published("a") == "one");
  CHECK_FALSE(output.has("b"));
  CHECK(read_text(later + "/b") == "two");
}

}  // namespace publisher_test
