#include "launch/connected_agents.hpp"

#include "catch.hpp"

namespace connected_agents_test {

using namespace taas;
using launch::ConnectedAgents;

namespace {

struct Recorder final : launch::Downlink {
  explicit Recorder(int& count) : told(count) {}
  void tell(const run::CoordinatorMessage&) override { ++told; }
  int& told;
};

run::Hello hello_of(std::string hostname, run::AgentRole role) {
  run::Hello hello;
  hello.hostname = std::move(hostname);
  hello.role = role;
  return hello;
}

}  // namespace

TEST_CASE("an agent is told until it has gone, and its number is never given again") {
  ConnectedAgents agents;
  int told = 0;
  const auto first = agents.add(std::make_unique<Recorder>(told));
  REQUIRE(agents.find(first) != nullptr);
  agents.find(first)->tell(run::OutputShown{});
  CHECK(told == 1);
  CHECK(agents.drop(first));
  CHECK_FALSE(agents.drop(first));
  CHECK(agents.find(first) == nullptr);
  CHECK(agents.add(std::make_unique<Recorder>(told)) != first);
}

TEST_CASE("what an agent of ranks says names its host, also when it has gone") {
  ConnectedAgents agents;
  int told = 0;
  const auto ranks = agents.add(std::make_unique<Recorder>(told));
  const auto data = agents.add(std::make_unique<Recorder>(told));
  const auto nameless = agents.add(std::make_unique<Recorder>(told));
  agents.note_host(ranks, hello_of("gpu-1", run::AgentRole::kRanks));
  agents.note_host(data, hello_of("cpu-1", run::AgentRole::kData));
  agents.note_host(nameless, hello_of("", run::AgentRole::kRanks));
  CHECK(agents.with_host(ranks, "the disk is full") == "gpu-1: the disk is full");
  CHECK(agents.with_host(data, "data worker 1 (host cpu-1) ended") == "data worker 1 (host cpu-1) ended");
  CHECK(agents.with_host(nameless, "the disk is full") == "the disk is full");
  agents.drop(ranks);
  CHECK(agents.with_host(ranks, "the disk is full") == "gpu-1: the disk is full");
}

}  // namespace connected_agents_test
