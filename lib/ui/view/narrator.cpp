#include "ui/view/narrator.hpp"

#include <fmt/format.h>

#include <cstring>

#include "base/text.hpp"
#include "run/events/words.hpp"
#include "ui/text/rank_set.hpp"

namespace taas::ui {
namespace {

using run::signal_name;

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

std::string describe(const run::ExitStatus& status) {
  if (status.signal == 0) return fmt::format("exited with code {}", status.code);
  return fmt::format("was killed by {}{}", signal_name(status.signal), status.core_dumped ? ", core dumped" : "");
}

/// What a verbose user reads of an event; empty: nothing.
std::string describe(const run::Event& event) {
  return std::visit(
      Overloaded{
          [](const run::RankSpawned& e) { return fmt::format("rank {} runs as process {}", e.rank.value, e.pid); },
          [](const run::StoreReached&) { return std::string("a rank has reached the store"); },
          [](const run::RankJoined& e) { return fmt::format("rank {} has joined its process group", e.rank.value); },
          [](const run::RankExited& e) { return fmt::format("rank {} {}", e.rank.value, describe(e.status)); },
          [](const run::RankSpawnFailed& e) { return fmt::format("rank {} did not start", e.rank.value); },
          [](const run::GenerationGone&) { return std::string("no process of the run is left"); },
          [](const run::SignalReceived& e) { return fmt::format("received {}", signal_name(e.signal)); },
          [](const auto&) { return std::string(); },
      },
      event);
}

std::string describe(const run::Action& action) {
  return std::visit(Overloaded{
                        [](const run::StartGeneration& a) {
                          return fmt::format("starting all ranks, generation {}", a.generation.value);
                        },
                        [](const run::SignalRanks& a) {
                          auto noun = a.ranks.size() == 1 ? "rank" : "ranks";
                          return fmt::format("sending {} to {} {}", signal_name(a.signal), noun,
                                             format_rank_set(a.ranks));
                        },
                        [](const run::KillGeneration&) { return std::string("killing every process that is left"); },
                        [](const auto&) { return std::string(); },
                    },
                    action);
}

Instant instant_of(const Event& event) {
  return std::visit(
      Overloaded{[](const OutputLine& line) { return line.at; }, [](const Message& message) { return message.at; },
                 [](const RunEvent& e) { return std::visit([](const auto& x) { return x.at; }, e.event); },
                 [](const RunAction&) { return Instant{}; },
                 [](const DataNews& e) { return std::visit([](const auto& x) { return x.at; }, e.event); },
                 [](const PhaseNews& news) { return news.at; },
                 [](const OutputNews& news) { return news.progress.at; }},
      event);
}

}  // namespace

Narrator::Narrator(const RendererOptions& options)
    : verbosity_(options.verbosity),
      style_(options.stderr_style),
      world_size_(static_cast<int>(options.outputs.size())),
      max_restarts_(options.max_restarts),
      run_start_(options.run_start),
      now_(options.run_start),
      working_directory_(options.working_directory),
      ci_(options.ci),
      data_(options.data) {}

std::vector<std::string> Narrator::tell(const Event& event) {
  advance(instant_of(event));
  return std::visit(Overloaded{[](const OutputLine&) { return std::vector<std::string>{}; },
                               [this](const Message& message) { return tell_message(message); },
                               [this](const RunEvent& e) { return tell_event(e.event); },
                               [this](const RunAction& a) { return tell_action(a.action); },
                               [this](const DataNews& news) {
                                 data_.update(news.event);
                                 return std::vector<std::string>{};
                               },
                               [](const PhaseNews&) { return std::vector<std::string>{}; },
                               [](const OutputNews&) { return std::vector<std::string>{}; }},
                    event);
}

std::vector<std::string> Narrator::tell_message(const Message& message) const {
  const auto text = printable(message.text);
  switch (message.level) {
    case Message::Level::kError:
      return {own_line(style_.paint(Paint::kRed, text), style_)};
    case Message::Level::kDebug:
      return debug(message.at, text);
    case Message::Level::kWarning:
    case Message::Level::kInfo:
      break;
  }
  if (verbosity_ == plan::Verbosity::kQuiet) return {};
  bool warning = message.level == Message::Level::kWarning;
  return {own_line(text, style_, warning ? Paint::kYellow : Paint::kBold)};  // yellow text is hard to read on white
}

std::vector<std::string> Narrator::tell_event(const run::Event& event) {
  if (const auto* gathered = std::get_if<run::NodesGathered>(&event)) world_size_ = gathered->world_size;
  return debug(now_, describe(event));
}

std::vector<std::string> Narrator::tell_action(const run::Action& action) {
  if (auto* notice = std::get_if<run::Notify>(&action)) {
    return tell_message({Message::Level::kInfo, notice->text, now_});
  }
  if (auto* start = std::get_if<run::StartGeneration>(&action)) return tell_start(*start);
  if (auto* failure = std::get_if<run::ReportFailure>(&action)) return tell_failure(*failure);
  if (auto* finish = std::get_if<run::Finish>(&action)) return tell_end(finish->verdict);
  return debug(now_, describe(action));
}

/// Where there is one attempt only, whoever opens the log wants to see it.
std::vector<std::string> Narrator::tell_start(const run::StartGeneration& start) {
  auto lines = debug(now_, describe(run::Action(start)));
  if (max_restarts_ == 0) return lines;
  for (auto& line : ci_.begin_group(fmt::format("taas-run: attempt {}", start.generation.value + 1)))
    lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> Narrator::tell_failure(const run::ReportFailure& failure) {
  reported_ = failure.verdict;
  Restart restart{world_size_, failure.restart, max_restarts_};
  restarts_ += failure.restarting ? 1 : 0;
  return report(failure.verdict, failure.restarting ? &restart : nullptr);
}

std::vector<std::string> Narrator::report(run::Verdict verdict, const Restart* restart) {
  auto lines = ci_.end_group();
  if (verdict.cause != run::Cause::kStopped && restart == nullptr)
    for (auto& mark : ci_.mark(verdict)) lines.push_back(std::move(mark));
  verdict.log_path = relative_to(working_directory_, verdict.log_path);
  for (auto& line : failure_report(verdict, style_, restart)) lines.push_back(std::move(line));
  return lines;
}

std::vector<std::string> Narrator::tell_end(const run::Verdict& verdict) {
  auto lines = ci_.end_group();
  for (auto& line : tell_data()) lines.push_back(std::move(line));
  bool known = reported_ && reported_->generation == verdict.generation && reported_->summary == verdict.summary;
  if (verdict.cause != run::Cause::kSuccess && !known) {
    for (auto& line : report(verdict, nullptr)) lines.push_back(std::move(line));
  }
  if (verbosity_ == plan::Verbosity::kQuiet || result_.folder.empty()) return lines;
  result_.elapsed = now_ - run_start_;
  result_.restarts = restarts_;
  lines.push_back(last_line(verdict.cause, result_, style_));
  return lines;
}

std::vector<std::string> Narrator::tell_data() const {
  if (verbosity_ == plan::Verbosity::kQuiet) return {};
  auto lines = data_.verdict();
  for (auto& line : lines) line = own_line(line, style_);
  return lines;
}

std::vector<std::string> Narrator::debug(Instant at, std::string_view text) const {
  if (verbosity_ != plan::Verbosity::kVerbose || text.empty()) return {};
  auto stamped = fmt::format("{:.3f} s: {}", seconds(std::max(at, run_start_) - run_start_), text);
  return {own_line(style_.paint(Paint::kDim, stamped), style_)};
}

}  // namespace taas::ui
