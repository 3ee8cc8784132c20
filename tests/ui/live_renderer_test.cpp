#include "ui/live_renderer.hpp"

#include "catch.hpp"
#include "helpers.hpp"
#include "terminal_model.hpp"

namespace live_renderer_test {

using namespace taas;
using namespace taas::ui;

using Rows = std::vector<std::string>;

namespace {

struct Live {
  explicit Live(RendererOptions options = options_for(2)) : renderer(prepare(options), out) {
    show(RunAction{run::StartGeneration{}}, 1000);
  }
  static RendererOptions& prepare(RendererOptions& options) {
    options.columns = 60;
    return options;
  }
  void show(const Event& event, long milliseconds) {
    renderer.tick(at_ms(milliseconds));
    renderer.show(event);
  }
  void tick(long milliseconds) { renderer.tick(at_ms(milliseconds)); }

  TextSink out;
  LiveRenderer renderer;
};

const std::string kFooter = "taas-run 0:01 | 0 of 2 ranks up";

}  // namespace

TEST_CASE("lines scroll above the footer") {
  Live live;
  CHECK(screen(live.out.text) == Rows{kFooter});
  live.renderer.show(line(0, "one", 1200));
  live.renderer.show(line(0, "two", 1400, Stream::kStderr));
  CHECK(screen(live.out.text) == Rows{"one", "two", kFooter});
}

TEST_CASE("the footer is drawn at most ten times a second") {
  Live live;
  auto draws = [&] {
    std::size_t count = 0;
    for (auto at = live.out.text.find("taas-run"); at != std::string::npos;
         at = live.out.text.find("taas-run", at + 1)) {
      ++count;
    }
    return count;
  };
  REQUIRE(draws() == 1);
  for (long i = 0; i < 1000; ++i) live.renderer.show(line(0, "line", 1000 + i / 2));
  CHECK(draws() <= 6);
  live.tick(1700);
  CHECK(screen(live.out.text).back() == kFooter);
  CHECK(screen(live.out.text).size() == 1001);
}

TEST_CASE("what was not drawn in time is drawn at the deadline") {
  Live live;
  live.renderer.show(line(0, "line", 1010));
  CHECK(screen(live.out.text) == Rows{"line", ""});
  REQUIRE(live.renderer.next_deadline() == at_ms(1100));
  live.tick(1100);
  CHECK(screen(live.out.text) == Rows{"line", kFooter});
}

TEST_CASE("the clock goes on without events") {
  Live live;
  REQUIRE(live.renderer.next_deadline() == at_ms(2000));
  live.tick(2000);
  CHECK(screen(live.out.text) == Rows{"taas-run 0:02 | 0 of 2 ranks up"});
}

TEST_CASE("a bar is seen in place and ends as a line") {
  Live live;
  for (long i = 0; i <= 100; ++i) live.renderer.show(progress(0, std::to_string(i) + "%", 1000 + i * 100));
  CHECK(screen(live.out.text) == Rows{"100%", "taas-run 0:11 | 0 of 2 ranks up"});
  live.renderer.show(line(0, "100% done", 11200));
  CHECK(screen(live.out.text) == Rows{"100% done", "taas-run 0:11 | 0 of 2 ranks up"});
}

TEST_CASE("a line that comes while a bar is drawn stands above it") {
  Live live(options_for(2, 2));
  live.renderer.show(progress(0, "50%", 1200));
  live.renderer.show(line(1, "news", 1300));
  live.tick(1500);
  CHECK(screen(live.out.text) == Rows{"[1] news", "[0] 50%", kFooter});
}

TEST_CASE("nothing of the footer is left at the end") {
  Live live;
  live.renderer.show(line(0, "one", 1200));
  live.show(RunAction{run::Finish{}}, 1400);
  live.renderer.finish();
  CHECK(screen(live.out.text) == Rows{"one", "taas-run: done in 1.4 s", ""});
  CHECK(live.renderer.next_deadline() == std::nullopt);
}

TEST_CASE("finish() alone clears the footer too") {
  Live live;
  live.renderer.finish();
  CHECK(screen(live.out.text) == Rows{""});
}

TEST_CASE("rows follow the terminal's width") {
  Live live;
  live.renderer.resize(10);
  live.tick(1200);
  CHECK(screen(live.out.text) == Rows{"taas-run "});
}

namespace {

OutputLine piece(std::string text, long milliseconds, Stream stream = Stream::kStdout) {
  auto result = line(0, std::move(text), milliseconds, stream);
  result.open = true;
  return result;
}

RendererOptions reading(int world, int shown = 1) {
  auto options = options_for(world, shown);
  options.reads_terminal = true;
  return options;
}

}  // namespace

TEST_CASE("nothing is drawn below a line of rank 0 that is not finished") {
  Live live(reading(2));
  live.renderer.show(piece("(Pdb) ", 1200));
  live.tick(9000);
  CHECK(screen(live.out.text) == Rows{"(Pdb) "});
  SECTION("its end stands behind it") {
    live.renderer.show(line(0, "42", 9100));
    CHECK(screen(live.out.text) == Rows{"(Pdb) 42", ""});
    live.tick(9500);
    CHECK(screen(live.out.text).back().empty());  // the next question may come
    live.renderer.show(piece("(Pdb) ", 9600));
    live.tick(20000);
    CHECK(screen(live.out.text) == Rows{"(Pdb) 42", "(Pdb) "});
  }
  SECTION("words begin a row of their own, and the question may still stand") {
    live.renderer.show(Message{Message::Level::kInfo, "words", at_ms(9100)});
    live.tick(12000);
    CHECK(screen(live.out.text) == Rows{"(Pdb) ", "taas-run: words", ""});
    live.renderer.show(line(0, "", 12100));
    live.tick(14000);
    CHECK(screen(live.out.text).size() == 3);
    CHECK(screen(live.out.text).back() == "taas-run 0:14 | 0 of 2 ranks up");
  }
  SECTION("the other stream begins a row of its own") {
    live.renderer.show(line(0, "news", 9100, Stream::kStderr));
    live.tick(12000);
    CHECK(screen(live.out.text) == Rows{"(Pdb) ", "news", ""});
  }
  SECTION("a bar that goes on shows that it was answered") {
    live.renderer.show(progress(0, "1%", 9100, Stream::kStderr));
    live.tick(9300);
    CHECK(screen(live.out.text) == Rows{"(Pdb) "});
    live.renderer.show(progress(0, "2%", 9400, Stream::kStderr));
    live.tick(9600);
    CHECK(screen(live.out.text) == Rows{"(Pdb) ", "2%", "taas-run 0:09 | 0 of 2 ranks up"});
  }
  SECTION("the rank ends") {
    live.show(RunEvent{run::RankExited{{}, Rank{0}, {}, {}, at_ms(9100)}}, 9100);
    live.tick(9300);
    CHECK(screen(live.out.text) == Rows{"(Pdb) ", "taas-run 0:09 | 0 of 2 ranks up"});
  }
}

TEST_CASE("a line that is not finished has its rank in front once") {
  Live live(reading(2, 2));
  live.renderer.show(piece("load", 1200));
  live.renderer.show(piece(".", 1300));
  live.renderer.show(line(0, " ok", 1400));
  CHECK(screen(live.out.text) == Rows{"[0] load. ok", ""});
}

TEST_CASE("a rank that cannot read the terminal hides no footer") {
  Live live;
  live.renderer.show(piece("working", 1200));
  CHECK(screen(live.out.text) == Rows{"working", kFooter});
}

TEST_CASE("nothing is drawn while a shell has the terminal, and what it wrote stays") {
  bool ours = true;
  auto options = options_for(2);
  options.in_foreground = [&ours] { return ours; };
  Live live(options);
  REQUIRE(screen(live.out.text) == Rows{kFooter});
  ours = false;
  live.out.write("\nStopped\n");
  live.renderer.show(line(0, "goes on", 2000));
  CHECK(live.renderer.next_deadline() > at_ms(2000));
  live.tick(4000);
  CHECK(live.renderer.next_deadline() > at_ms(4000));
  CHECK(screen(live.out.text) == Rows{kFooter, "Stopped", "goes on", ""});
  ours = true;
  live.tick(6000);
  CHECK(screen(live.out.text) == Rows{kFooter, "Stopped", "goes on", "taas-run 0:06 | 0 of 2 ranks up"});
}

TEST_CASE("a rank that moves the cursor has the terminal to itself") {
  Live live(options_for(1));
  live.renderer.show(line(0, "outer", 1200));
  live.renderer.show(progress(0, "inner 1\x1b[A", 1300));
  live.renderer.show(progress(0, "outer 2", 1400));
  live.tick(9000);
  CHECK(screen(live.out.text) == Rows{"outer 2", "inner 1"});
  CHECK(live.renderer.next_deadline() == std::nullopt);
  live.renderer.show(Message{Message::Level::kInfo, "words", at_ms(9100)});
  CHECK(live.out.text.substr(live.out.text.size() - 17) == "\ntaas-run: words\n");
}

TEST_CASE("of several ranks none can move the cursor") {
  Live live(options_for(2, 2));
  live.renderer.show(progress(1, "inner\x1b[A", 1200));
  live.renderer.show(line(0, "up\x1b[3A and away", 1300));
  live.tick(1500);
  CHECK(screen(live.out.text) == Rows{"[0] up and away", "[1] inner", kFooter});
}

}  // namespace live_renderer_test
