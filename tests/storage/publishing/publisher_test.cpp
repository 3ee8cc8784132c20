#include "storage/publishing/publisher.hpp"

#include <fcntl.h>

#include <atomic>
#include <thread>

#include "base/files.hpp"
#include "catch.hpp"
#include "publisher_output.hpp"
#include "storage/child_process.hpp"
#include "storage/liveness.hpp"

namespace publisher_test {

using namespace taas;
using namespace taas::storage;
using publisher_output::Output;
namespace fs = std::filesystem;

namespace {

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
