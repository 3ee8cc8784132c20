#include "ui/json_renderer.hpp"

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/utf8.hpp"
#include "run/messages/journal.hpp"

namespace taas::ui {
namespace {

const char* name_of(Message::Level level) {
  switch (level) {
    case Message::Level::kInfo:
      return "info";
    case Message::Level::kWarning:
      return "warning";
    case Message::Level::kError:
      return "error";
    case Message::Level::kDebug:
      return "debug";
  }
  return "info";
}

}  // namespace

JsonRenderer::JsonRenderer(const RendererOptions& options, Sink& out)
    : lines_(options),
      verbosity_(options.verbosity),
      run_start_(options.run_start),
      data_(options.data),
      data_told_(options.run_start),
      out_(out) {}

void JsonRenderer::show(const Event& event) {
  std::string text;
  if (auto* line = std::get_if<OutputLine>(&event)) text = line_of(*line);
  if (auto* message = std::get_if<Message>(&event)) text = line_of(*message);
  if (auto* happened = std::get_if<RunEvent>(&event)) text = run::journal_line(happened->event, run_start_);
  if (auto* decided = std::get_if<RunAction>(&event)) {
    if (std::holds_alternative<run::Finish>(decided->action)) judge_data();
    text = run::journal_line(decided->action, run_start_);
  }
  if (auto* news = std::get_if<DataNews>(&event)) {
    data_.update(news->event);
    data_told_ = std::visit([](const auto& told) { return told.at; }, news->event);
    text = run::journal_line(news->event, run_start_);
  }
  if (!text.empty()) out_.write(text + '\n');
}

void JsonRenderer::judge_data() {
  for (auto& text : data_.verdict()) show(Message{Message::Level::kInfo, std::move(text), data_told_});
}

std::string JsonRenderer::line_of(const OutputLine& line) const {
  if (!lines_.shows(line) || (line.progress && line.text.empty())) return {};
  boost::json::object object{{"at", seconds(line.at - run_start_)},
                             {"event", "output"},
                             {"rank", line.rank.value},
                             {"stream", line.stream == Stream::kStdout ? "stdout" : "stderr"},
                             {"text", valid_utf8(line.text)}};
  if (line.progress) object["progress"] = true;
  if (line.open) object["open"] = true;
  return boost::json::serialize(object);
}

std::string JsonRenderer::line_of(const Message& message) const {
  bool important = message.level == Message::Level::kError;
  if (message.level == Message::Level::kDebug && verbosity_ != plan::Verbosity::kVerbose) return {};
  if (!important && verbosity_ == plan::Verbosity::kQuiet) return {};
  return boost::json::serialize(boost::json::object{{"at", seconds(message.at - run_start_)},
                                                    {"event", "message"},
                                                    {"level", name_of(message.level)},
                                                    {"text", valid_utf8(message.text)}});
}

}  // namespace taas::ui
