#include "ui/view/footer.hpp"

#include <fmt/format.h>

#include "base/bytes.hpp"
#include "base/text.hpp"
#include "ui/text/rank_set.hpp"
#include "ui/text/utf8.hpp"

namespace taas::ui {
namespace {

constexpr auto kGathersSilently = std::chrono::seconds(1);

std::string clock_text(Duration elapsed) {
  auto total = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

}  // namespace

std::string publishing_in_words(const run::OutputProgress& progress) {
  if (progress.files == 0) return "publishing what the ranks wrote";
  return fmt::format(
      "publishing {}, {}", plural(progress.files, "file"),
      share_in_words(static_cast<std::uint64_t>(progress.bytes_done), static_cast<std::uint64_t>(progress.bytes)));
}

Footer::Footer(const RendererOptions& options)
    : run_start_(options.run_start),
      max_restarts_(options.max_restarts),
      world_size_(options.outputs.size()),
      style_(options.stderr_style),
      data_(options.data) {}

void Footer::update(const run::Event& event) {
  if (auto* spawned = std::get_if<run::RankSpawned>(&event)) up_.insert(spawned->rank);
  if (auto* joined = std::get_if<run::RankJoined>(&event)) joined_.insert(joined->rank);
  if (auto* exited = std::get_if<run::RankExited>(&event)) {
    up_.erase(exited->rank);
    clear_progress(exited->rank);
  }
  if (auto* gathered = std::get_if<run::NodesGathered>(&event)) {
    world_size_ = static_cast<std::size_t>(gathered->world_size);
  }
}

void Footer::update(const run::Action& action) {
  if (auto* failure = std::get_if<run::ReportFailure>(&action); failure && failure->restart > 0) {
    restarts_ = failure->restart;
  }
  if (std::holds_alternative<run::GatherNodes>(action)) gathering_ = true;
  if (std::holds_alternative<run::StartGeneration>(action)) {
    running_ = true;
    gathering_ = false;
    publishing_ = stopping_ = killed_ = false;
    killed_at_.reset();
    up_.clear();
    joined_.clear();
    phase_ = {};
  }
  if (auto* signal = std::get_if<run::SignalRanks>(&action); signal && signal->to_end) stopping_ = true;
  if (std::holds_alternative<run::KillGeneration>(action)) killed_ = true;
  if (auto* deadline = std::get_if<run::SetDeadline>(&action)) killed_at_ = deadline->until;
  if (std::holds_alternative<run::ClearDeadline>(action)) killed_at_.reset();
  if (std::holds_alternative<run::SettleOutput>(action)) publishing_ = true;
  if (std::holds_alternative<run::Finish>(action)) {
    running_ = gathering_ = false;
    finished_ = true;
  }
}

void Footer::update(const run::RunPhase& phase, Instant at) {
  if (phase.name != phase_.name) phase_since_ = at;
  phase_ = phase;
}

void Footer::set_progress(Rank rank, std::string text) {
  if (!progress_.empty() && progress_rank_ < rank) return;
  progress_rank_ = rank;
  progress_ = std::move(text);
}

void Footer::clear_progress(Rank rank) {
  if (progress_rank_ == rank) progress_.clear();
}

std::vector<std::string> Footer::rows(Instant now, int columns) const {
  std::vector<std::string> rows;
  if (!finished_) {
    for (const auto& row : data_.rows()) rows.push_back(style_.paint(Paint::kDim, clip(row, columns)));
  }
  const auto first = first_row_at();
  if (!running_ && (!first || now < *first)) return rows;
  if (!progress_.empty()) rows.push_back(clip(progress_, columns));
  rows.push_back(style_.paint(Paint::kDim, clip(status(now), columns)));
  return rows;
}

/// Nodes of one machine are there at once: no row flashes up for them.
std::optional<Instant> Footer::first_row_at() const {
  if (running_ || !gathering_) return std::nullopt;
  return run_start_ + kGathersSilently;
}

/// Whose end is waited for, and until when.
std::string Footer::stopping(Instant now) const {
  std::vector<Rank> left(up_.begin(), up_.end());
  auto text = fmt::format("stopping: {} {} left", left.size() == 1 ? "rank" : "ranks", format_rank_set(left));
  if (killed_) return text + ", killed";
  if (!killed_at_ || *killed_at_ <= now) return text;
  const auto rest = std::chrono::ceil<std::chrono::seconds>(*killed_at_ - now);
  return text + fmt::format(", killed in {} s", rest.count());
}

std::string Footer::status(Instant now) const {
  auto text = fmt::format("taas-run {} | ", clock_text(now - run_start_));
  if (stopping_ && !up_.empty()) return text + stopping(now);
  if (publishing_) return text + publishing_in_words(published_);
  if (!running_) return text + "gathering nodes";
  const bool all = up_.size() == world_size_ && joined_.size() >= up_.size() && !phase_.name.empty();
  text += all ? plural(static_cast<std::int64_t>(world_size_), "rank")
              : fmt::format("{} of {} {} up", up_.size(), world_size_, world_size_ == 1 ? "rank" : "ranks");
  if (!all && !joined_.empty()) text += fmt::format(", {} joined", joined_.size());
  if (!phase_.name.empty()) {
    text += fmt::format(" | {}{}", phase_.name, phase_.rest);
    const auto lasts = std::chrono::duration_cast<std::chrono::seconds>(now - phase_since_);
    if (phase_.passes && lasts.count() > 0) text += fmt::format(", {} s", lasts.count());
  }
  if (restarts_ > 0) text += fmt::format(" | restart {} of {}", restarts_, max_restarts_);
  return text;
}

}  // namespace taas::ui
