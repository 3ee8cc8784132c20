#include "ui/view/data_progress_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ui/text/quantities.hpp"

namespace taas::ui {
namespace {

constexpr auto kRecent = std::chrono::seconds(5);

double percent(double part, double whole) { return whole > 0 ? 100 * part / whole : 0; }

}  // namespace

DataProgressView::Counts& DataProgressView::Counts::operator+=(const Counts& more) {
  samples += more.samples;
  batches += more.batches;
  bytes += more.bytes;
  seconds += more.seconds;
  waited += more.waited;
  return *this;
}

/// Counts that went down are those of another process, which has taken the place of the former.
void DataProgressView::Source::take(const Counts& now) {
  if (now.batches < last.batches || now.seconds < last.seconds) before += last;
  last = now;
}

DataProgressView::Counts DataProgressView::Source::all() const {
  auto sum = before;
  return sum += last;
}

DataProgressView::Counts DataProgressView::Loader::sum() const {
  Counts sum;
  for (const auto& [rank, source] : of_rank) sum += source.all();
  return sum;
}

double DataProgressView::Loader::longest() const {
  double longest = 0;
  for (const auto& [rank, source] : of_rank) longest = std::max(longest, source.all().seconds);
  return longest;
}

int DataProgressView::Loader::buffered() const {
  int buffered = 0;
  for (const auto& [rank, source] : of_rank) buffered += source.buffered;
  return buffered;
}

void DataProgressView::update(const run::DataEvent& event) {
  std::visit([this](const auto& told) { take(told); }, event);
}

void DataProgressView::take(const run::DataProgress& progress) {
  auto& loader = loaders_[progress.loader];
  auto& source = loader.of_rank[progress.rank.value];
  source.take({static_cast<double>(progress.samples), static_cast<double>(progress.batches),
               static_cast<double>(progress.bytes), progress.seconds, progress.waited});
  source.buffered = progress.done ? 0 : progress.buffered;
  loader.has_workers = loader.has_workers || progress.workers > 0;
  loader.recent.push_back({progress.at, loader.sum()});
  while (loader.recent.size() > 2 && progress.at - loader.recent[1].at >= kRecent) loader.recent.pop_front();
}

void DataProgressView::take(const run::DataWork& work) {
  workers_[work.worker].take({0, static_cast<double>(work.batches), 0, work.seconds, work.seconds - work.busy});
}

std::vector<std::string> DataProgressView::rows() const {
  std::vector<std::string> rows;
  if (loaders_.empty() && !prepared_.empty()) rows.push_back(preparation());
  for (const auto& [name, loader] : loaders_) rows.push_back(row(name, loader));
  return rows;
}

std::string DataProgressView::row(const std::string& name, const Loader& loader) const {
  auto all = loader.sum();
  const auto& then = loader.recent.front();
  const auto& now = loader.recent.back();
  double span = seconds(now.at - then.at);
  auto text = fmt::format("data {}: ", name);
  if (span > 0) text += fmt::format("{} samples/s", with_commas((now.counts.samples - then.counts.samples) / span));
  const auto waited = fmt::format("waited {:.1f} %", percent(all.waited, all.seconds));
  if (!loader.has_workers) return text + (span > 0 ? " | " : "") + waited;
  if (span > 0) text += fmt::format(", {}/s | ", byte_count((now.counts.bytes - then.counts.bytes) / span));
  return text + fmt::format("{} batches buffered | {} | {}", loader.buffered(), waited, byte_count(all.bytes));
}

std::string DataProgressView::preparation() const {
  double batches = 0;
  double bytes = 0;
  int done = 0;
  for (const auto& [worker, prepared] : prepared_) {
    batches += static_cast<double>(prepared.batches);
    bytes += static_cast<double>(prepared.bytes);
    done += prepared.done ? 1 : 0;
  }
  return fmt::format("data: {} batches prepared, {} | {} worker(s) done", with_commas(batches), byte_count(bytes),
                     done);
}

std::vector<std::string> DataProgressView::verdict() const {
  std::vector<std::string> lines;
  for (const auto& [name, loader] : loaders_) {
    auto all = loader.sum();
    double longest = loader.longest();
    const auto rate = all.bytes > 0 && longest > 0 ? fmt::format(", {}/s", byte_count(all.bytes / longest)) : "";
    lines.push_back(fmt::format("data: {}: {} samples in {:.1f} s{}; the {} waited {:.1f} % for data", name,
                                with_commas(all.samples), longest, rate, options_.on_gpus ? "GPUs" : "ranks",
                                percent(all.waited, all.seconds)));
  }
  auto predicted = prediction();
  if (lines.empty() || predicted.empty()) return lines;
  if (lines.size() == 1) {
    lines.front() += "; " + predicted;
  } else {
    lines.push_back("data: " + predicted);
  }
  return lines;
}

/// Of each rank all loops together, since they follow each other.
std::string DataProgressView::prediction() const {
  std::map<int, Counts> of_rank;
  for (const auto& [name, loader] : loaders_) {
    for (const auto& [rank, source] : loader.of_rank) of_rank[rank] += source.all();
  }
  DataLoad load;
  load.machines = options_.machines;
  for (const auto& [rank, counts] : of_rank) {
    if (counts.seconds <= load.loop_seconds) continue;
    load.loop_seconds = counts.seconds;
    load.training_seconds = counts.seconds - counts.waited;
  }
  for (const auto& [worker, source] : workers_) load.busy_seconds += source.all().seconds - source.all().waited;
  load.worker_seconds = static_cast<double>(workers_.size()) * load.loop_seconds;
  auto needed = machines_needed(load);
  if (!needed) return "";
  auto machines = fmt::format("{} CPU {}", *needed, *needed == 1 ? "machine" : "machines");
  if (*needed < options_.machines) return machines + " would have been enough";
  if (*needed > options_.machines) return machines + " would have kept up";
  return machines + (*needed == 1 ? " was enough" : " were enough");
}

}  // namespace taas::ui
