#include "storage/publisher.hpp"

#include <fcntl.h>

#include <atomic>
#include <optional>
#include <thread>

#include "base/files.hpp"
#include "catch.hpp"
#include "child_process.hpp"
#include "small_disk.hpp"
#include "storage/liveness.hpp"
#include "temporary_folder.hpp"

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
  std::function<bool()> alive = [] { return true; };
  std::vector<std::string> errors;
  std::unique_ptr<Publisher> publisher;

  explicit Output(std::string other_files = {}) {
    if (!other_files.empty()) files = std::move(other_files);
    fs::create_directories(staging);
    fs::create_directories(files);
    publisher = Publisher::start(io, {staging, files, [this] { return alive(); },
                                      [this](const Error& error) { errors.push_back(error.message); }});
  }

  void write(const std::string& name, const std::string& text) { write_text(staging + "/" + name, text); }
  [[nodiscard]] std::string published(const std::string& name) const { return read_text(files + "/" + name); }
  [[nodiscard]] bool has(const std::string& name) const { return fs::exists(fs::symlink_status(files + "/" + name)); }

  template <class Condition>
  bool runs_until(Condition condition) {
    while (!condition()) {
      io.restart();
      if (io.run_one_for(std::chrono::seconds(20)) == 0) return false;
    }
    return true;
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
  PublisherOptions options{output.staging, output.files, output.alive, {}, std::chrono::milliseconds(20)};
  output.publisher = Publisher::start(output.io, options);
  REQUIRE(output.runs_until([&] { return output.has("early"); }));
  CHECK(output.published("early") == "text");
}

TEST_CASE("a run that is over before the watch begins publishes at its end") {
  Output output;
  output.publisher.reset();
  output.write("model.pt", "text");
  PublisherOptions options{output.staging, output.files, output.alive, {}, std::chrono::hours(1)};
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
  output.alive = [&] { return process_is_alive(child.pid()); };
  output.write("whole", "text");
  REQUIRE(output.runs_until([&] { return output.has("whole"); }));
  child.kill();
  child.wait_dead();
  CHECK(output.abandon() == Names{"model.pt"});
  CHECK_FALSE(output.has("model.pt"));

  SECTION("nor does the good end of a later generation") {
    output.alive = [] { return true; };
    output.write("new", "text");
    CHECK(output.settle().empty());
    CHECK(output.has("new"));
    CHECK_FALSE(output.has("model.pt"));
    CHECK(fs::exists(path));
  }
  SECTION("until a later generation writes it anew") {
    output.alive = [] { return true; };
    output.write("model.pt", "all of it");
    CHECK(output.settle().empty());
    CHECK(output.published("model.pt") == "all of it");
    CHECK_FALSE(fs::exists(output.staging));
  }
}

TEST_CASE("the event of a dying writer's close publishes nothing") {
  Output output;
  output.alive = [] { return false; };
  output.write("model.pt", "who knows");
  output.alive = [&, asked = 0]() mutable {
    if (++asked == 1) output.write("later", "text");
    return asked > 1;
  };
  REQUIRE(output.runs_until([&] { return output.has("later"); }));
  CHECK_FALSE(output.has("model.pt"));
  CHECK(output.abandon() == Names{"model.pt"});
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
  output.alive = [] { return false; };
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
  if (!disk.mounted()) {
    WARN("skipped: a small tmpfs cannot be mounted here (needs root)");
    return;
  }
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

}  // namespace publisher_test
