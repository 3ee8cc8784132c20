#include "ui/view/narrator.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <utility>

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

constexpr int kToldAlike = 2;  // failures like the one before, with a line each; then those whose count doubles

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

Message words_of(const run::NodesSilent& event) {
  const bool one = event.nodes.size() == 1;
  auto text =
      fmt::format("{} {} not answered for {:.0f} s; {} as lost after {:g} s without a sign of life",
                  run::name_nodes(event.nodes, event.names), one ? "has" : "have", seconds(event.at - event.last_heard),
                  one ? "it counts" : "they count", seconds(event.lost_after));
  return {Message::Level::kWarning, std::move(text), event.at};
}

Message words_of(const run::NodesAnswer& event) {
  auto text = fmt::format("{} {} again, after {:.1f} s", run::name_nodes(event.nodes, event.names),
                          event.nodes.size() == 1 ? "answers" : "answer", seconds(event.silence));
  return {Message::Level::kInfo, std::move(text), event.at};
}

Instant instant_of(const Event& event) {
  return std::visit(
      Overloaded{[](const OutputLine& line) { return line.at; }, [](const Message& message) { return message.at; },
                 [](const RunEvent& e) { return std::visit([](const auto& x) { return x.at; }, e.event); },
                 [](const RunAction&) { return Instant{}; },
                 [](const DataNews& e) { return std::visit([](const auto& x) { return x.at; }, e.event); }},
      event);
}

}  // namespace

Narrator::Narrator(const RendererOptions& options)
    : verbosity_(options.verbosity),
      style_(options.stderr_style),
      world_size_(static_cast<int>(options.outputs.size())),
      max_restarts_(options.max_restarts),
      folder_(options.folder),
      run_start_(options.run_start),
      now_(options.run_start),
      data_(options.data),
      wants_data_(options.data.machines > 0) {}

std::vector<std::string> Narrator::tell(const Event& event) {
  advance(instant_of(event));
  return std::visit(Overloaded{[](const OutputLine&) { return std::vector<std::string>{}; },
                               [this](const Message& message) { return tell_message(message); },
                               [this](const RunEvent& e) { return tell_event(e.event); },
                               [this](const RunAction& a) { return tell_action(a.action); },
                               [this](const DataNews& news) {
                                 data_.update(news.event);
                                 return std::vector<std::string>{};
                               }},
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
  return {own_line(warning ? style_.paint(Paint::kYellow, text) : text, style_)};
}

std::vector<std::string> Narrator::tell_event(const run::Event& event) {
  if (const auto* gathered = std::get_if<run::NodesGathered>(&event)) world_size_ = gathered->world_size;
  if (const auto* silent = std::get_if<run::NodesSilent>(&event)) return tell_message(words_of(*silent));
  if (const auto* answer = std::get_if<run::NodesAnswer>(&event)) return tell_message(words_of(*answer));
  return debug(now_, describe(event));
}

std::vector<std::string> Narrator::tell_action(const run::Action& action) {
  if (auto* notice = std::get_if<run::Notify>(&action)) {
    return tell_message({Message::Level::kInfo, notice->text, now_});
  }
  if (auto* failure = std::get_if<run::ReportFailure>(&action)) return tell_failure(*failure);
  if (auto* finish = std::get_if<run::Finish>(&action)) return tell_end(finish->verdict);
  return debug(now_, describe(action));
}

std::vector<std::string> Narrator::tell_failure(const run::ReportFailure& failure) {
  reported_ = failure.verdict;
  Restart restart{world_size_, failure.restart, max_restarts_, failure.pause};
  if (!failure.restarting || failure.alike == 0) {
    auto lines = tell_untold();
    auto report = failure_report(failure.verdict, style_, failure.restarting ? &restart : nullptr, folder_);
    lines.insert(lines.end(), report.begin(), report.end());
    return lines;
  }
  if (failure.alike <= kToldAlike) {
    return {own_line(fmt::format("{}, as before; {}", printable(failure.verdict.summary), describe(restart)), style_)};
  }
  ++untold_;
  const bool due = std::has_single_bit(static_cast<unsigned>(failure.alike));
  if (!due) return {};
  return {own_line(fmt::format("and {} more like it; {}", std::exchange(untold_, 0), describe(restart)), style_)};
}

/// Of those that came since the last line about them.
std::vector<std::string> Narrator::tell_untold() {
  const int untold = std::exchange(untold_, 0);
  if (untold == 0) return {};
  return {own_line(fmt::format("and {} more like it", untold), style_)};
}

std::vector<std::string> Narrator::tell_end(const run::Verdict& verdict) {
  auto lines = tell_untold();
  const bool well = verdict.cause == run::Cause::kSuccess;
  auto data = tell_data(well);
  lines.insert(lines.end(), data.begin(), data.end());
  bool known = reported_ && reported_->generation == verdict.generation && reported_->summary == verdict.summary;
  std::vector<std::string> end;
  if (well) {
    if (verbosity_ != plan::Verbosity::kQuiet) end = {success_line(now_ - run_start_, output_, style_, folder_)};
  } else if (!known) {
    end = failure_report(verdict, style_, nullptr, folder_);
  }
  lines.insert(lines.end(), end.begin(), end.end());
  return lines;
}

std::vector<std::string> Narrator::tell_data(bool ended_well) const {
  if (verbosity_ == plan::Verbosity::kQuiet) return {};
  auto lines = data_.verdict();
  if (lines.empty() && ended_well && wants_data_) {
    lines.emplace_back(
        "--cpus had no effect: the program has read nothing from a registered loader; taas.register(loader) hands one "
        "to the CPU machines");
  }
  for (auto& line : lines) line = own_line(line, style_);
  return lines;
}

std::vector<std::string> Narrator::debug(Instant at, std::string_view text) const {
  if (verbosity_ != plan::Verbosity::kVerbose || text.empty()) return {};
  auto stamped = fmt::format("{:.3f} s: {}", seconds(std::max(at, run_start_) - run_start_), text);
  return {own_line(style_.paint(Paint::kDim, stamped), style_)};
}

}  // namespace taas::ui
