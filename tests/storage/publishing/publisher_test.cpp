#include "storage/publishing/publisher.hpp"

#include <fcntl.h>

#include <atomic>
#include <thread>

#include "base/files.hpp"
#include "catch.hpp"
#include "publisher_output.hpp"
#include "storage/child_process.hpp"

namespace publisher_test {

using namespace taas;
using namespace taas::storage;
using publisher_output::Output;
namespace fs = std::filesystem;

namespace {

using Names = std::vector<std::string>;
using Left = std::vector<Doubtful>;

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
  auto options = output.options();
  options.watch_after = std::chrono::milliseconds(20);
  output.restart(options);
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
  output.writers.add(child.pid());
  output.write("whole", "text");
  REQUIRE(output.runs_until([&] { return output.has("whole"); }));
  child.kill();
  child.wait_dead();
  output.writers.ended(child.pid(), WriterEnd::kKilled);
  CHECK(output.abandon() == Left{{"model.pt"}});
  CHECK_FALSE(output.has("model.pt"));
  output.writers.clear();

  SECTION("nor does the good end of a later generation") {
    output.write("new", "text");
    CHECK(output.settle().empty());
    CHECK(output.has("new"));
    CHECK_FALSE(output.has("model.pt"));
    CHECK(fs::exists(path));
  }
  SECTION("until a later generation writes it anew") {
    output.write("model.pt", "all of it");
    CHECK(output.settle().empty());
    CHECK(output.published("model.pt") == "all of it");
    CHECK_FALSE(fs::exists(output.staging));
  }
}

TEST_CASE("what a rank closes as it raises is not published, and leaves the earlier version") {
  Output output;
  output.write("model.pt", "whole");
  REQUIRE(output.runs_until([&] { return output.has("model.pt"); }));
  output.write("model.pt", "ha");
  output.writers.raised(steady_now());
  output.ended(WriterEnd::kBadly);
  CHECK(output.abandon() == Left{{"model.pt", true}});
  CHECK(output.published("model.pt") == "whole");

  output.writers.clear();
  output.write("later", "text");
  REQUIRE(output.runs_until([&] { return output.has("later"); }));
  CHECK(output.published("model.pt") == "whole");
}

TEST_CASE("what ranks had open when they were told to end is doubtful, and what they begin then is not") {
  Output output;
  output.write("earlier", "text");
  REQUIRE(output.runs_until([&] { return output.has("earlier"); }));
  Fd writer(::open((output.staging + "/model.pt").c_str(), O_WRONLY | O_CREAT, 0644));
  REQUIRE(write_all(writer, "half").has_value());
  output.publisher->stop({false, {{"model.pt", 1}}});
  writer.reset();
  output.write("saved.pt", "on purpose");
  REQUIRE(output.runs_until([&] { return output.has("saved.pt"); }));
  SECTION("after a bad end") {
    output.ended(WriterEnd::kBadly);
    CHECK(output.abandon() == Left{{"model.pt"}});
  }
  SECTION("after a good end that came with the signal") {
    CHECK(output.settle() == "");
    CHECK(output.doubtful == Left{{"model.pt"}});
    CHECK(fs::exists(output.staging + "/model.pt"));
  }
  CHECK_FALSE(output.has("model.pt"));
  CHECK(output.published("saved.pt") == "on purpose");
}

TEST_CASE("what is renamed into place counts, whatever happens to ranks then") {
  Output output;
  output.write("earlier", "text");
  REQUIRE(output.runs_until([&] { return output.has("earlier"); }));
  output.write("model.tmp", "whole");
  fs::rename(output.staging + "/model.tmp", output.staging + "/model.pt");
  output.publisher->stop({true, {}});
  output.ended(WriterEnd::kKilled);
  CHECK(output.abandon() == Left{});
  CHECK(output.published("model.pt") == "whole");
}

TEST_CASE("a later publisher believes only what the one before has put on disk") {
  Output output;
  output.write("published.pt", "whole");
  REQUIRE(output.runs_until([&] { return output.has("published.pt"); }));
  output.publisher.reset();
  output.write("left.pt", "ha");
  auto options = output.options();
  options.inherits = true;
  output.restart(options);
  output.write("new.pt", "text");
  CHECK(output.settle() == "");
  CHECK(output.has("new.pt"));
  CHECK_FALSE(output.has("left.pt"));
  CHECK(fs::exists(output.staging + "/left.pt"));
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
  auto options = output.options();
  options.on_published = [&told](const std::string& name) { told.push_back(name); };
  output.restart(options);
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
  fs::create_directories(later);
  output.publisher->publish_to(HeldFolder::open(later).value());
  output.write("b", "two");
  CHECK(output.settle().empty());
  CHECK(output.published("a") == "one");
  CHECK_FALSE(output.has("b"));
  CHECK(read_text(later + "/b") == "two");
}

}  // namespace publisher_test
