#include "ui/view/footer.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "run/events/words.hpp"
#include "ui/text/utf8.hpp"

namespace taas::ui {
namespace {

std::string clock_text(Duration elapsed) {
  auto total = std::chrono::duration_cast<std::chrono::seconds>(elapsed).count();
  if (total < 3600) return fmt::format("{}:{:02}", total / 60, total % 60);
  return fmt::format("{}:{:02}:{:02}", total / 3600, total / 60 % 60, total % 60);
}

}  // namespace

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
    silent_.clear();
  }
  update_silence(event);
}

void Footer::update_silence(const run::Event& event) {
  if (const auto* silent = std::get_if<run::NodesSilent>(&event)) {
    for (std::size_t i = 0; i < silent->nodes.size(); ++i) {
      silent_.push_back({silent->nodes[i], silent->names[i], silent->last_heard, silent->lost_after});
    }
  }
  if (const auto* lost = std::get_if<run::NodeLost>(&event)) {
    std::erase_if(silent_, [&](const auto& one) { return one.node == lost->node; });
  }
  const auto* answer = std::get_if<run::NodesAnswer>(&event);
  for (std::size_t i = 0; answer != nullptr && i < answer->nodes.size(); ++i) {
    std::erase_if(silent_,
                  [&](const auto& one) { return one.node == answer->nodes[i] && one.name == answer->names[i]; });
  }
}

void Footer::update(const run::Action& action) {
  if (auto* failure = std::get_if<run::ReportFailure>(&action); failure && failure->restart > 0) {
    restarts_ = failure->restart;
  }
  if (std::holds_alternative<run::StartGeneration>(action)) {
    running_ = true;
    up_.clear();
    joined_.clear();
  }
  if (std::holds_alternative<run::Finish>(action)) {
    running_ = false;
    finished_ = true;
  }
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
  if (!running_) return rows;
  if (!progress_.empty()) rows.push_back(clip(progress_, columns));
  rows.push_back(style_.paint(Paint::kDim, clip(status(now), columns)));
  return rows;
}

std::string Footer::status(Instant now) const {
  auto text = fmt::format("taas-run {} | {} of {} {} up", clock_text(now - run_start_), up_.size(), world_size_,
                          world_size_ == 1 ? "rank" : "ranks");
  if (!joined_.empty()) text += fmt::format(", {} joined", joined_.size());
  if (restarts_ > 0) text += fmt::format(" | restart {} of {}", restarts_, max_restarts_);
  return text + silence(now);
}

/// " | node 2 (hostc) has not answered for 4 s", and for how long the first one of several.
std::string Footer::silence(Instant now) const {
  std::vector<NodeIndex> nodes;
  std::vector<std::string> names;
  auto since = now;
  for (const auto& one : silent_) {
    const bool stands_by = one.node.value < 0;  // of which no loss is told
    if (stands_by && now >= one.since + one.lost_after) continue;
    nodes.push_back(one.node);
    names.push_back(one.name);
    since = std::min(since, one.since);
  }
  if (nodes.empty()) return "";
  return fmt::format(" | {} {} not answered for {:.0f} s", run::name_nodes(nodes, names),
                     nodes.size() == 1 ? "has" : "have", seconds(now - since));
}

}  // namespace taas::ui
