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
  explicit Live(RendererOptions options = options_for(2)) : renderer(prepare(options), out, err) {
    show(RunAction{run::StartGeneration{}}, 1000);
  }
  static RendererOptions& prepare(RendererOptions& options) {
    options.one_terminal = true;
    options.columns = 60;
    return options;
  }
  void show(const Event& event, long milliseconds) {
    renderer.tick(at_ms(milliseconds));
    renderer.show(event);
  }
  void tick(long milliseconds) { renderer.tick(at_ms(milliseconds)); }

  TextSink out, err;
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
  CHECK(live.err.text.empty());
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

TEST_CASE("stdout that is no terminal gets lines alone") {
  TextSink out, err;
  auto options = options_for(2);
  options.columns = 60;
  LiveRenderer renderer(options, out, err);
  renderer.tick(at_ms(1000));
  renderer.show(RunAction{run::StartGeneration{}});
  renderer.show(line(0, "to a file", 1200));
  renderer.show(line(0, "to the terminal", 1400, Stream::kStderr));
  CHECK(out.text == "to a file\n");
  CHECK(screen(err.text) == Rows{"to the terminal", kFooter});
}

}  // namespace live_renderer_test
