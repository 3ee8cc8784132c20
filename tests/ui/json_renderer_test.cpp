#include "ui/json_renderer.hpp"

#include <boost/json/parse.hpp>

#include "catch.hpp"
#include "helpers.hpp"

namespace json_renderer_test {

using namespace taas;
using namespace taas::ui;

namespace {

boost::json::object shown(const Event& event, RendererOptions options = options_for(2)) {
  TextSink out;
  JsonRenderer renderer(options, out);
  renderer.show(event);
  REQUIRE(out.text.find('\n') == out.text.size() - 1);
  return boost::json::parse(out.text.substr(0, out.text.size() - 1)).as_object();
}

std::string written(const Event& event, RendererOptions options = options_for(2)) {
  TextSink out;
  JsonRenderer(options, out).show(event);
  return out.text;
}

}  // namespace

TEST_CASE("an output line is one object") {
  auto object = shown(line(0, "he said \"hi\"\t", 1500, Stream::kStderr));
  CHECK(object["event"] == "output");
  CHECK(object["rank"] == 0);
  CHECK(object["stream"] == "stderr");
  CHECK(object["text"] == "he said \"hi\"\t");
  CHECK(object["at"] == 1.5);
  CHECK_FALSE(object.contains("progress"));
  CHECK_FALSE(object.contains("open"));
  CHECK(shown(progress(0, "50%", 0))["progress"] == true);
  auto prompt = line(0, "name? ");
  prompt.open = true;
  CHECK(shown(prompt)["open"] == true);
}

TEST_CASE("bytes that are no UTF-8 still make valid JSON") {
  CHECK(shown(line(0, "a\xff"))["text"] == "a\xef\xbf\xbd");
}

TEST_CASE("ranks that are not on the console are not shown") { CHECK(written(line(1, "hidden")).empty()); }

TEST_CASE("messages carry their level and heed verbosity") {
  auto object = shown(Message{Message::Level::kWarning, "words", at_ms(0)});
  CHECK(object["event"] == "message");
  CHECK(object["level"] == "warning");
  CHECK(object["text"] == "words");
  CHECK(written(Message{Message::Level::kDebug, "words", at_ms(0)}).empty());
  auto quiet = options_for(2);
  quiet.verbosity = plan::Verbosity::kQuiet;
  CHECK(written(Message{Message::Level::kInfo, "words", at_ms(0)}, quiet).empty());
  CHECK_FALSE(written(Message{Message::Level::kError, "words", at_ms(0)}, quiet).empty());
}

TEST_CASE("the run's events are those of the journal") {
  auto object = shown(RunEvent{run::RankExited{{}, Rank{1}, {3}, {}, at_ms(10)}});
  CHECK(object["event"] == "rank_exited");
  CHECK(object["rank"] == 1);
  CHECK(shown(RunAction{run::Notify{"words"}}).contains("action"));
}

}  // namespace json_renderer_test
