#include "node/check/examiner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <boost/json/serialize.hpp>
#include <chrono>
#include <utility>

#include "base/files.hpp"
#include "base/json/json.hpp"
#include "net/addresses.hpp"
#include "proc/family/family.hpp"
#include "proc/output/capture.hpp"
#include "proc/spawn/spawn.hpp"

namespace taas::node {
namespace {

constexpr auto kProbePatience = std::chrono::seconds(3);
constexpr const char* kThisProgram = "/proc/self/exe";

}  // namespace

/// The child. It ends with this process; what it says once the examiner is gone is for nobody.
struct Examiner::Trial {
  std::string said;
  std::unique_ptr<Capture> capture;
  std::function<void(const std::string&)> on_said;

  void ended() {
    capture->drain_now();
    if (auto tell = std::exchange(on_said, nullptr)) tell(said);
  }
};

Examiner::Examiner(boost::asio::io_context& io, Family& family, std::string listen_address, Say say)
    : io_(io), family_(family), listen_address_(std::move(listen_address)), say_(std::move(say)) {}

Examiner::~Examiner() {
  if (trial_) trial_->on_said = nullptr;
}

void Examiner::examine(const ExamineWish& wish, const Environment& environment) {
  const auto refuse = [&](const Error& error) { answer(no_facts(error.message)); };
  auto input = make_pipe();
  if (!input) return refuse(input.error());
  auto output = make_pipe();
  if (!output) return refuse(output.error());
  SpawnRequest request;
  request.argv = {kThisProgram, kExamineFlag};
  request.environment = assignments(environment);
  request.standard_input = &input->read;
  request.standard_output = &output->write;
  auto child = spawn(request);
  if (!child) return refuse(child.error());
  input->read.reset();
  // A wish is some KiB; the child reads it before it does anything else.
  if (auto written = write_all(input->write, boost::json::serialize(to_json(wish)) + "\n"); !written) {
    return refuse(written.error());
  }
  trial_ = std::make_shared<Trial>();
  trial_->on_said = [this](const std::string& text) { answer(facts_of(text)); };
  CaptureCallbacks calls;
  calls.on_bytes = [trial = trial_.get()](std::string_view bytes, Instant) { trial->said += bytes; };
  trial_->capture = std::make_unique<Capture>(io_, std::move(output->read), CaptureLog{}, std::move(calls));
  family_.watch(std::move(*child), [trial = trial_](ExitStatus, Instant) { trial->ended(); });
}

/// Nobody accepts: that the kernel completes a connection is all that others want to know.
void Examiner::answer(run::NodeFacts facts) {
  if (doors_.empty()) {
    auto bound = net::bind_all(io_, {.addresses = {listen_address_}, .purpose = "for the check"});
    if (bound) doors_ = std::move(*bound);
    if (!bound) facts.refusals.push_back(bound.error().message);
  }
  boost::system::error_code ignored;
  const auto port = doors_.empty() ? std::uint16_t{0} : doors_.front().local_endpoint(ignored).port();
  facts.wall_ns =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch()).count();
  say_(run::NodeExamined{std::move(facts), port, steady_now()});
}

void Examiner::reach(const run::ReachNodes& wish) {
  unreached_.clear();
  probes_.clear();
  probing_ = wish.doors.size();
  for (const auto& door : wish.doors) {
    auto on_done = [this, door](const std::vector<std::string>& reached, const std::string&) {
      if (reached.empty()) {
        unreached_.push_back(
            fmt::format("{}: no connection to port {} of {}", door.name, door.port, fmt::join(door.addresses, ", ")));
      }
      if (--probing_ == 0) say_(run::NodesReached{unreached_});
    };
    probes_.push_back(net::probe(io_, door.addresses, door.port, kProbePatience, std::move(on_done)));
  }
  if (probing_ == 0) say_(run::NodesReached{});
}

}  // namespace taas::node
