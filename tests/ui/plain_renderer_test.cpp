#include "ui/plain_renderer.hpp"

#include "catch.hpp"
#include "helpers.hpp"

namespace plain_renderer_test {

using namespace taas;
using namespace taas::ui;

TEST_CASE("a rank's stdout and stderr go to ours") {
  TextSink out, err;
  PlainRenderer renderer(options_for(2), out, err);
  renderer.show(line(0, "to out"));
  renderer.show(line(0, "to err", 0, Stream::kStderr));
  renderer.show(line(1, "hidden"));
  renderer.show(Message{Message::Level::kInfo, "words", at_ms(0)});
  CHECK(out.text == "to out\n");
  CHECK(err.text == "to err\ntaas-run: words\n");
}

TEST_CASE("a bar of one of several ranks is shown every ten seconds and at its end") {
  TextSink out, err;
  PlainRenderer renderer(options_for(2, 2), out, err);
  for (long second = 0; second <= 25; ++second) renderer.show(progress(0, std::to_string(second), second * 1000));
  renderer.tick(at_ms(25200));
  CHECK(out.text == "[0] 10\n[0] 20\n");
  renderer.show(line(0, "100%", 26000));
  renderer.tick(at_ms(26100));
  CHECK(out.text == "[0] 10\n[0] 20\n[0] 100%\n");
  renderer.show(progress(0, "next bar", 27000));
  CHECK(out.text == "[0] 10\n[0] 20\n[0] 100%\n");
}

TEST_CASE("one rank's bytes are passed on") {
  TextSink out, err;
  PlainRenderer renderer(options_for(2), out, err);
  renderer.show(progress(0, "1%", 0));
  auto ended = line(0, "2%");
  ended.raw = "2%\r\n";
  renderer.show(ended);
  auto open = line(0, "name? ");
  open.open = true;
  renderer.show(open);
  CHECK(out.text == "1%\r2%\r\nname? ");
}

TEST_CASE("words of the launcher end an open line where they stand") {
  TextSink out, err;
  auto options = options_for(2);
  SECTION("stderr has one") {
    PlainRenderer renderer(options, out, err);
    renderer.show(progress(0, "50%", 0, Stream::kStderr));
    renderer.show(Message{Message::Level::kInfo, "words", at_ms(0)});
    CHECK(err.text == "50%\r\ntaas-run: words\n");
  }
  SECTION("stdout has one, and goes elsewhere") {
    PlainRenderer renderer(options, out, err);
    renderer.show(progress(0, "50%", 0));
    renderer.show(Message{Message::Level::kInfo, "words", at_ms(0)});
    CHECK(out.text == "50%\r");
    CHECK(err.text == "taas-run: words\n");
  }
  SECTION("stdout has one, and goes to the same file") {
    options.one_file = true;
    PlainRenderer renderer(options, out, out);
    renderer.show(progress(0, "50%", 0));
    renderer.show(Message{Message::Level::kInfo, "words", at_ms(0)});
    CHECK(out.text == "50%\r\ntaas-run: words\n");
  }
}

TEST_CASE("folded lines come out in time and at the end") {
  TextSink out, err;
  PlainRenderer renderer(options_for(3, 3), out, err);
  renderer.show(line(0, "x", 0));
  renderer.show(line(1, "x", 10));
  REQUIRE(renderer.next_deadline() == at_ms(100));
  renderer.tick(at_ms(100));
  CHECK(out.text == "[0-1] x\n");
  renderer.show(line(2, "late", 110));
  renderer.finish();
  CHECK(out.text == "[0-1] x\n[2] late\n");
}

TEST_CASE("the launcher's words come after what was said before") {
  TextSink both;
  PlainRenderer renderer(options_for(2, 2), both, both);
  renderer.show(line(0, "before", 0));
  renderer.show(Message{Message::Level::kError, "words", at_ms(1)});
  CHECK(both.text == "[0] before\ntaas-run: words\n");
}

}  // namespace plain_renderer_test
