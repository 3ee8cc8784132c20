#include "launch/batch_job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "base/text.hpp"

namespace taas::launch {
namespace {

using namespace std::chrono_literals;

constexpr Duration kFirstPause = 1s;
constexpr Duration kLongestAskPause = 15s;
constexpr Duration kLongestReleasePause = 60s;
constexpr Duration kCancelPatience = 20s;  // SLURM kills a job 30 s after it has told it to end
constexpr std::string_view kNotHeldAnyMore = "no longer pending";
/// What scancel says where there is nothing to cancel: the job has ended, or is not in the state that was named.
constexpr std::string_view kNothingToCancel[] = {"already completing or completed", "Invalid job id"};

Duration doubled(Duration pause, Duration longest) {
  return pause == Duration{} ? kFirstPause : std::min(2 * pause, longest);
}

std::string last_of(const std::vector<std::string>& lines) { return lines.empty() ? "it said nothing" : lines.back(); }

bool is_nothing_to_cancel(const std::string& said) {
  return std::any_of(std::begin(kNothingToCancel), std::end(kNothingToCancel),
                     [&said](std::string_view words) { return contains(said, words); });
}

}  // namespace

BatchJob::BatchJob(boost::asio::io_context& io, Family& family, Options options, Callbacks callbacks)
    : io_(io),
      family_(family),
      options_(std::move(options)),
      callbacks_(std::move(callbacks)),
      ask_again_(io, [this] { ask(); }),
      release_again_(io, [this] { try_release(); }) {}

void BatchJob::watch() { ask(); }

std::unique_ptr<HostCommand> BatchJob::start(std::vector<std::string> argv, HostCommand::OnEnd on_end) {
  auto name = argv.front();
  auto started = HostCommand::start(io_, family_, {std::move(argv), options_.environment, ""}, std::move(on_end));
  if (started) return std::move(*started);
  callbacks_.notice(fmt::format("{} cannot be run: {}", name, started.error().message));
  return nullptr;
}

void BatchJob::ask() {
  question_ = start(plan::ask_job_state(options_.id),
                    [this](ExitStatus, const std::vector<std::string>& lines) { hear(lines); });
}

/// Where SLURM did not answer, nothing has changed.
void BatchJob::hear(const std::vector<std::string>& lines) {
  auto now = plan::read_job_state(lines);
  bool news = now.phase != plan::JobPhase::kUnknown && now.phase != state_.phase;
  ask_pause_ = news ? kFirstPause : doubled(ask_pause_, kLongestAskPause);
  if (news) state_ = now;
  if (state_.phase != plan::JobPhase::kOver) return ask_again_.set(steady_now() + ask_pause_);
  callbacks_.over(fmt::format("job {}, which has {}, is over ({}): slurm-{}.out is its output", options_.id,
                              options_.name, state_.name, options_.id));
}

/// Who submitted it may have released it before.
void BatchJob::release() {
  bool held = state_.phase == plan::JobPhase::kUnknown || state_.phase == plan::JobPhase::kHeld;
  if (held) try_release();
}

void BatchJob::try_release() {
  if (state_.phase == plan::JobPhase::kOver) return;
  release_ =
      start({"scontrol", "release", options_.id}, [this](ExitStatus status, const std::vector<std::string>& lines) {
        released(status.success() || contains(last_of(lines), kNotHeldAnyMore), lines);
      });
}

void BatchJob::released(bool done, const std::vector<std::string>& lines) {
  ask_pause_ = {};
  if (done) return callbacks_.notice(fmt::format("job {} is released: its nodes are waited for", options_.id));
  if (!std::exchange(failure_told_, true)) {
    callbacks_.notice(
        fmt::format("job {} could not be released: {}; this is tried again, and scontrol release {} does "
                    "the same",
                    options_.id, last_of(lines), options_.id));
  }
  release_pause_ = doubled(release_pause_, kLongestReleasePause);
  release_again_.set(steady_now() + release_pause_);
}

std::vector<std::string> BatchJob::cancel_command() const {
  if (static_cast<int>(arrived_.size()) < options_.nodes) return {"scancel", options_.id};
  return {"scancel", "--state=PENDING", options_.id};
}

Result<> BatchJob::end() {
  ask_again_.clear();
  release_again_.clear();
  question_.reset();
  release_.reset();
  if (state_.phase == plan::JobPhase::kOver) return {};
  std::optional<std::string> failure;
  auto cancel = start(cancel_command(), [&failure](ExitStatus status, const std::vector<std::string>& lines) {
    failure = status.success() ? "" : last_of(lines);
  });
  if (!cancel) failure = "scancel cannot be run";
  Timer patience(io_, [&failure] { failure = "SLURM does not answer"; });
  patience.set(steady_now() + kCancelPatience);
  while (!failure) io_.run_one();
  if (failure->empty() || is_nothing_to_cancel(*failure)) return {};
  return unavailable_error(
      fmt::format("job {}, which has {}, was not cancelled: {}", options_.id, options_.name, *failure));
}

}  // namespace taas::launch
