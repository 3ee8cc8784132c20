#include "node/process/rank_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "node/process/rank_process.hpp"
#include "proc/family/family.hpp"
#include "proc/preload/preloaded_python.hpp"

namespace taas::node {
namespace {

/// What lib/python/preload says of a module that is not installed.
constexpr const char* kNoModule = "there is no module";

}  // namespace

RankSource::RankSource(boost::asio::io_context& io, Family& family, RankSourceOptions options,
                       std::function<void(std::string)> remark)
    : io_(io),
      family_(family),
      options_(std::move(options)),
      remark_(std::move(remark)),
      given_up_(options_.choice.modules.empty()) {
  if (given_up_ && options_.choice.is_news) remark_(fmt::format("not preloaded: {}", options_.choice.why));
}

RankSource::~RankSource() = default;

void RankSource::prepare(const std::function<CommonEnvironment()>& find_common, std::function<void()> go) {
  if (given_up_) return go();
  auto common = find_common();
  bool same = interpreter_ && variables_ == common.variables;
  if (same && settled_ && !interpreter_->usable()) give_up("the preloaded Python has ended");
  if (given_up_ || (same && settled_)) return go();
  go_ = std::move(go);
  if (!same) start(common);
}

void RankSource::start(const CommonEnvironment& common) {
  if (options_.hook_folder.empty()) return settle("the files of taas-run for it are not beside it");
  if (auto names = plan::read_at_start(common.per_rank); !names.empty()) {
    return settle(fmt::format("{} {} between ranks and {} read when a process starts", fmt::join(names, ", "),
                              names.size() == 1 ? "differs" : "differ", names.size() == 1 ? "is" : "are"));
  }
  PreloadRequest request;
  request.command = options_.command;
  request.options = options_.choice.options;
  request.environment = common.variables;
  request.modules = options_.choice.modules;
  request.per_rank = common.per_rank;
  request.set_by_program = options_.choice.set_by_program;
  request.read_at_load = plan::read_at_load();
  request.read_later = plan::read_later();
  request.hook_folder = options_.hook_folder;
  request.open_files_limit = options_.open_files_limit;
  request.ignored_signals = signals_to_ignore(common.variables);
  variables_ = common.variables;
  settled_ = false;
  auto started = PreloadedPython::start(io_, family_, request, [this](const std::string& refusal) { settle(refusal); });
  if (!started) return settle(started.error().message);
  interpreter_ = std::move(*started);
}

void RankSource::settle(const std::string& refusal) {
  settled_ = true;
  if (!refusal.empty()) give_up(refusal);
  if (auto go = std::exchange(go_, nullptr)) go();
}

/// A program that only may use torch runs without it as well.
void RankSource::give_up(const std::string& why) {
  given_up_ = true;
  const bool guessed_wrong = options_.choice.by_itself && why.find(kNoModule) != why.npos;
  if (!guessed_wrong) remark_(fmt::format("not preloaded: {}; each rank starts a Python of its own", why));
}

void RankSource::hurry() {
  if (auto go = std::exchange(go_, nullptr)) go();
}

void RankSource::forget() {
  go_ = nullptr;
  if (!interpreter_ || !interpreter_->usable()) return;
  interpreter_->cancel();
  if (!interpreter_->usable()) interpreter_.reset();  // the next generation gets another
}

void RankSource::spawn(const std::vector<SpawnRequest>& requests, const OnChild& on_child) {
  if (given_up_ || !interpreter_ || !interpreter_->usable()) return spawn_fresh(requests, on_child);
  interpreter_->spawn(requests, on_child, [this, requests, on_child](const Result<>& how) {
    if (how) return;
    give_up(how.error().message);
    spawn_fresh(requests, on_child);
  });
}

void RankSource::spawn_fresh(const std::vector<SpawnRequest>& requests, const OnChild& on_child) {
  for (std::size_t i = 0; i < requests.size(); ++i) {
    auto child = taas::spawn(requests[i]);
    const bool failed = !child;
    on_child(i, std::move(child));
    if (failed) return;
  }
}

}  // namespace taas::node
