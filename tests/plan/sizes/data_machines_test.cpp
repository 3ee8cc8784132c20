#include "plan/sizes/data_machines.hpp"

#include "catch.hpp"

namespace data_machines_test {

using namespace taas;
using namespace taas::plan;

namespace {

const LaunchMode kHere = OneMachine{};

std::string refusal(const DataOptions& options, const LaunchMode& mode = kHere) {
  auto machines = decide_data_machines(options, mode);
  REQUIRE_FALSE(machines.has_value());
  CHECK(machines.error().code == ErrorCode::kUsage);
  return machines.error().message;
}

DataOptions with(int cpus) {
  DataOptions options;
  options.cpus = cpus;
  return options;
}

}  // namespace

TEST_CASE("without --cpus there is no CPU machine") {
  auto machines = decide_data_machines({}, kHere);
  REQUIRE(machines.has_value());
  CHECK(machines->count == 0);
  CHECK(decide_data_machines(with(0), kHere)->count == 0);
}

TEST_CASE("CPU machines without a list are simulated here") {
  auto machines = decide_data_machines(with(3), kHere);
  REQUIRE(machines.has_value());
  CHECK(machines->count == 3);
  CHECK(machines->hosts.empty());
}

TEST_CASE("a list of hosts is as long as --cpus wants it") {
  auto options = with(2);
  options.hosts = "a:4,b,c";
  auto machines = decide_data_machines(options, kHere);
  REQUIRE(machines.has_value());
  CHECK(machines->hosts == std::vector<Host>{{"", "a", 4}, {"", "b", std::nullopt}});
  options.cpus.reset();
  CHECK(decide_data_machines(options, kHere)->count == 3);
  options.cpus = 4;
  CHECK(refusal(options) == "--cpus 4: --data-hosts a:4,b,c names 3 only");
}

TEST_CASE("flags of data delivery need CPU machines") {
  const std::string kWhy = ": only with --cpus N, the number of CPU machines";
  DataOptions options;
  options.units = 7;
  CHECK(refusal(options) == "--units 7" + kWhy);
  options = {};
  options.cores = 2;
  CHECK(refusal(options) == "--data-cores 2" + kWhy);
  options = {};
  options.loader = "data:train";
  CHECK(refusal(options) == "--loader data:train" + kWhy);
  options = {};
  options.plain = true;
  CHECK(refusal(options) == "--data-plain" + kWhy);
  options = {};
  options.compression = Compression::kLz4;
  CHECK(refusal(options) == "--data-compress" + kWhy);
  options = {};
  options.on_error = OnDataError::kSkip;
  CHECK(refusal(options) == "--data-on-error" + kWhy);
  options = {};
  options.buffer_bytes = 1;
  CHECK(refusal(options) == "--data-buffer" + kWhy);
}

TEST_CASE("what --cpus 0 cannot have") {
  auto options = with(0);
  options.units = 7;
  CHECK(decide_data_machines(options, kHere).has_value());
  options.loader = "data:train";
  CHECK(refusal(options) == "--loader data:train: --cpus 0 has no CPU machine to prepare it");
  options.cores = 2;
  CHECK(refusal(options) == "--data-cores 2: --cpus 0 has no CPU machine");
  options.hosts = "a";
  CHECK(refusal(options) == "--data-hosts a: --cpus 0 leaves them nothing to do");
}

TEST_CASE("ranks on other machines need CPU machines that are named") {
  const LaunchMode ssh = OverSsh{{{"", "a", std::nullopt}}};
  CHECK(refusal(with(1), ssh) == "--cpus 1: over several machines --data-hosts has to name them");
  auto options = with(1);
  options.hosts = "c";
  CHECK(decide_data_machines(options, ssh)->hosts.size() == 1);
  CHECK(decide_data_machines(with(0), ssh).has_value());
}

TEST_CASE("simulated machines share the cores") {
  CHECK(simulated_data_workers({}, 2, 8) == 4);
  CHECK(simulated_data_workers({}, 3, 8) == 2);
  CHECK(simulated_data_workers({}, 4, 2) == 1);
  CHECK(simulated_data_workers({}, 0, 2) == 2);
  auto options = with(4);
  options.cores = 3;
  CHECK(simulated_data_workers(options, 4, 2) == 3);
}

TEST_CASE("CPU machines in words") {
  CHECK(describe(DataMachines{}, with(0), 8) == "no CPU machine, loaders are plain");
  CHECK(describe(DataMachines{2, {}}, with(2), 8) == "2 CPU machines, simulated here, with 4 worker(s) each");
  DataMachines far{2, {{"", "a", 4}, {"", "b", std::nullopt}}};
  CHECK(describe(far, with(2), 8) == "2 CPU machines over ssh: a (workers: 4) b (workers: as many as cores)");
}

TEST_CASE("in a heterogeneous job the second component makes batches") {
  SlurmJob job;
  job.id = "7";
  job.nodes = {"g0", "g1"};
  job.groups = {{"7", {"g0", "g1"}}, {"8", {"c0", "c1"}}};
  const LaunchMode allocation = SlurmAllocation{job};
  auto machines = decide_data_machines(with(1), allocation, job);
  REQUIRE(machines.has_value());
  CHECK(machines->names() == std::vector<std::string>{"c0"});
  CHECK(decide_data_machines(with(2), kHere, job)->group.size() == 2);
  auto refused = decide_data_machines(with(3), allocation, job);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().message == "--cpus 3: the job's second component has 2 node(s)");
  CHECK(describe(*machines, with(1), 8) == "1 CPU machine of the job's second component: c0");
}

TEST_CASE("in a staged submission a job of CPU machines starts first") {
  auto machines = decide_data_machines(with(2), SlurmStaged{});
  REQUIRE(machines.has_value());
  CHECK(machines->staged);
  CHECK(machines->count == 2);
  CHECK(describe(*machines, with(2), 8) == "2 CPU machines of a job that starts first");
}

TEST_CASE("more data workers than memory is there for are said, with the flags that mend it") {
  constexpr std::int64_t kGiga = 1'000'000'000;
  CHECK(data_memory_warning(2, 2, 4 * kGiga).empty());
  CHECK(data_memory_warning(10, 2, 6 * kGiga).empty());
  CHECK(data_memory_warning(40, 2, 16 * kGiga) ==
        "40 data workers take about 12.0 GB of this machine's 16.0 GB of available memory, their datasets not counted, "
        "and it has 2 usable core(s): --data-cores or --cpus with a smaller number starts fewer");
}

TEST_CASE("another job has no CPU nodes, but one machine can play them") {
  SlurmJob job;
  job.id = "7";
  job.nodes = {"g0", "g1"};
  CHECK(decide_data_machines(with(2), kHere, job)->names().empty());
  auto refused = decide_data_machines(with(1), SlurmAllocation{job}, job);
  REQUIRE_FALSE(refused.has_value());
  CHECK_THAT(refused.error().message, ContainsSubstring("--cpus 1: a job of SLURM needs a second component"));
  CHECK(decide_data_machines(with(2), SlurmSubmit{}, std::nullopt)->count == 2);
}

}  // namespace data_machines_test
