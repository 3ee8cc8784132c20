#include "run/check/findings.hpp"

#include "base/bytes.hpp"
#include "catch.hpp"

namespace findings_test {

using namespace taas;
using namespace taas::run;

namespace {

ExaminedNode node(const std::string& name) {
  ExaminedNode node;
  node.name = name;
  auto& facts = node.facts;
  facts.machine = "x86_64";
  facts.libc = "2.36";
  facts.program = {"", "train.py", "ab12", "/venv/bin/python", "3.11.2", "", "2.9.1+cu128", "12.8", "2.27.5"};
  facts.gpus.driver = "570.12";
  facts.gpus.visible = facts.gpus.on_bus = facts.gpus.device_files = 8;
  facts.limits = {1024, 1 << 20, -1, 65536, 30000, false, true};
  facts.shared_memory = {"/dev/shm", "", 16 * kGiB, 15 * kGiB, -1};
  facts.output = {"/runs", "", 100 * kGiB, 50 * kGiB, 1e9};
  facts.network.interfaces = {"lo", "eth0", "ib0"};
  facts.network.addresses = {"10.0.0.1"};
  facts.network.name_means = {"10.0.0.1"};
  facts.memory_bytes = 100 * kGiB;
  facts.ranks = 8;
  return node;
}

/// "E torch", "W clock": of one node that `change` was done to, beside two others.
template <class Change>
std::vector<std::string> codes(Change change) {
  std::vector<ExaminedNode> nodes{node("a"), node("b"), node("c")};
  change(nodes[1]);
  std::vector<std::string> found;
  for (const auto& finding : find_faults(nodes)) {
    CHECK(finding.nodes == std::vector<std::string>{"b"});
    CHECK_FALSE(finding.text.empty());
    found.push_back((finding.severity == Severity::kError ? "E " : "W ") + finding.code);
  }
  return found;
}

using Codes = std::vector<std::string>;

}  // namespace

TEST_CASE("sound nodes have no faults") {
  CHECK(find_faults({}).empty());
  CHECK(find_faults({node("a")}).empty());
  CHECK(find_faults({node("a"), node("b")}).empty());
}

TEST_CASE("a CPU machine needs the same Python and torch, and neither GPUs nor CUDA") {
  auto machine = node("d");
  machine.makes_data = true;
  machine.facts.gpus = {};
  machine.facts.machine = "aarch64";
  machine.facts.limits.open_files = machine.facts.limits.open_files_hard = 16;
  machine.facts.program.torch = "2.9.1+cpu";
  machine.facts.program.nccl.clear();
  CHECK(find_faults({node("a"), node("b"), machine}).empty());
  machine.facts.program.torch = "2.8.0+cpu";
  machine.facts.program.python = "3.12.1";
  machine.facts.program.digest = "cd34";
  const auto found = find_faults({node("a"), machine, machine, machine});
  std::vector<std::string> texts;
  for (const auto& finding : found) texts.push_back(line_of(finding, 4));
  CHECK(texts ==
        std::vector<std::string>{
            "d, d, d: train.py has other contents there than on most nodes; copy it to all nodes, or keep it on shared "
            "storage",
            "d, d, d: has torch 2.8.0, the others torch 2.9.1; give all nodes the same environment, best from shared "
            "storage or one image",
            "d, d, d: has Python 3.12, the others Python 3.11; give all nodes the same environment, best from shared "
            "storage or one image"});
}

TEST_CASE("each fault is found on the node that has it") {
  using N = ExaminedNode;
  CHECK(codes([](N& b) { b.facts.program.problem = "train.py: no such file"; }) == Codes{"E program"});
  CHECK(codes([](N& b) { b.facts.program.python_problem = "python cannot run"; }) == Codes{"E python"});
  CHECK(codes([](N& b) { b.facts.refusals = {"4 GPUs here, 8 ranks"}; }) == Codes{"E refused"});
  CHECK(codes([](N& b) { b.facts.program.digest = "cd34"; }) == Codes{"E program"});
  CHECK(codes([](N& b) { b.facts.program.torch = "2.8.0"; }) == Codes{"E torch"});
  CHECK(codes([](N& b) { b.facts.program.torch.clear(); }) == Codes{"E torch"});
  CHECK(codes([](N& b) { b.facts.program.nccl = "2.26.2"; }) == Codes{"E nccl"});
  CHECK(codes([](N& b) { b.facts.program.python = "3.12.1"; }) == Codes{"E python"});
  CHECK(codes([](N& b) { b.facts.program.python = "3.11.9"; }).empty());
  CHECK(codes([](N& b) { b.facts.machine = "aarch64"; }) == Codes{"E machine"});
  CHECK(codes([](N& b) { b.facts.libc = "2.31"; }) == Codes{"W libc"});
  CHECK(codes([](N& b) { b.facts.gpus.driver = "575.3"; }) == Codes{"W driver"});
  CHECK(codes([](N& b) { b.facts.gpus.driver = "470.9"; }) == Codes{"E driver", "W driver"});
  CHECK(codes([](N& b) { b.facts.gpus.device_files = 7; }) == Codes{"E gpu_devices"});
  CHECK(codes([](N& b) { b.facts.gpus.held = {{"3", "pid 811 (jupyter), 60.1 GiB"}}; }) == Codes{"W gpu_held"});
  CHECK(codes([](N& b) { b.facts.gpus.failing = {{"3", "has fallen off the bus", true}}; }) == Codes{"E gpu_fails"});
  CHECK(codes([](N& b) { b.facts.gpus.failing = {{"3", "has had 2 errors", false}}; }) == Codes{"W gpu_fails"});
  CHECK(codes([](N& b) { b.facts.limits.open_files = 64; }) == Codes{"W open_files"});
  CHECK(codes([](N& b) { b.facts.limits.locked_bytes = 65536; }) == Codes{"E locked_memory"});
  CHECK(codes([](N& b) { b.facts.limits.processes = 100; }) == Codes{"E processes"});
  CHECK(codes([](N& b) { b.facts.limits.processes_left = 100; }) == Codes{"E processes"});
  CHECK(codes([](N& b) { b.facts.shared_memory.total_bytes = 64 * kMiB; }) == Codes{"W shared_memory"});
  CHECK(codes([](N& b) { b.facts.shared_memory.free_bytes = 8 * kMiB; }) == Codes{"E shared_memory"});
  CHECK(codes([](N& b) { b.facts.shared_memory.problem = "cannot be written to"; }) == Codes{"E shared_memory"});
  CHECK(codes([](N& b) { b.facts.output.problem = "cannot be written to"; }) == Codes{"E output"});
  CHECK(codes([](N& b) { b.facts.output.free_bytes = 10 * kMiB; }) == Codes{"E output"});
  CHECK(codes([](N& b) { b.facts.output.free_bytes = 500 * kMiB; }) == Codes{"W output"});
  CHECK(codes([](N& b) { b.facts.output.bytes_per_second = 1e5; }) == Codes{"W output_speed"});
  CHECK(codes([](N& b) { b.facts.network.name_problem = "b: not known"; }) == Codes{"W own_name"});
  CHECK(codes([](N& b) { b.facts.network.name_means = {"10.9.9.9"}; }) == Codes{"E own_name"});
  CHECK(codes([](N& b) { b.facts.network.name_means = {"127.0.1.1"}; }).empty());
  CHECK(codes([](N& b) { b.facts.memory_bytes = kGiB; }) == Codes{"W memory"});
  CHECK(codes([](N& b) { b.clock = std::chrono::seconds(-5); }) == Codes{"W clock"});
  CHECK(codes([](N& b) { b.unreached = {"c: no connection to port 4 of 10.0.0.3"}; }) == Codes{"E network"});
}

TEST_CASE("limits that do not hold are no faults") {
  using N = ExaminedNode;
  CHECK(codes([](N& b) { b.facts.limits.processes = 100, b.facts.limits.privileged = true; }).empty());
  CHECK(codes([](N& b) { b.facts.limits.locked_bytes = 65536, b.facts.limits.has_rdma = false; }).empty());
  CHECK(codes([](N& b) { b.facts.limits.processes_left = -1; }).empty());
}

TEST_CASE("names of interfaces are read as NCCL, Gloo and TensorPipe read them") {
  const auto named = [](const std::string& variable, const std::string& value) {
    return codes([&](ExaminedNode& b) { b.facts.network.variables[variable] = value; }).empty();
  };
  CHECK(named("NCCL_SOCKET_IFNAME", "ib"));
  CHECK(named("NCCL_SOCKET_IFNAME", "eth1,ib0"));
  CHECK(named("NCCL_SOCKET_IFNAME", "=ib0"));
  CHECK(named("NCCL_SOCKET_IFNAME", "^lo,docker"));
  CHECK(named("NCCL_SOCKET_IFNAME", "=ib0:1"));
  CHECK_FALSE(named("NCCL_SOCKET_IFNAME", "=ib"));
  CHECK_FALSE(named("NCCL_SOCKET_IFNAME", "bond"));
  CHECK_FALSE(named("NCCL_SOCKET_IFNAME", "^lo,e,i"));
  CHECK(named("GLOO_SOCKET_IFNAME", "eth0"));
  CHECK_FALSE(named("GLOO_SOCKET_IFNAME", "eth"));
  CHECK(named("TP_SOCKET_IFNAME", "ib0"));
  CHECK_FALSE(named("TP_SOCKET_IFNAME", "eth9"));
}

TEST_CASE("what is the same on several nodes is one finding, and errors come first") {
  std::vector<ExaminedNode> nodes{node("a"), node("b"), node("c"), node("d"), node("e")};
  for (auto* each : {&nodes[1], &nodes[3]}) each->facts.program.torch = "2.8.0";
  nodes[0].facts.network.name_problem = "a: not known";
  const auto found = find_faults(nodes);
  REQUIRE(found.size() == 2);
  CHECK(line_of(found[0], 5) ==
        "b, d: has torch 2.8.0, the others torch 2.9.1+cu128; give all nodes the same environment, best from shared "
        "storage or one image");
  CHECK(found[1].severity == Severity::kWarning);
}

TEST_CASE("a line names all nodes as such, and not more of them than can be read") {
  Finding finding{Severity::kError, "x", {"a", "b"}, "is wrong", ""};
  CHECK(line_of(finding, 2) == "all nodes: is wrong");
  CHECK(line_of(finding, 3) == "a, b: is wrong");
  finding.nodes = {"a", "b", "c", "d", "e", "f", "g", "h"};
  CHECK(line_of(finding, 9) == "a, b, c, d, e, f and 2 more: is wrong");
  finding.nodes = {"a"};
  CHECK(line_of(finding, 1) == "a: is wrong");
}

TEST_CASE("a node whose Python does not run lacks no torch: that was told") {
  CHECK(codes([](ExaminedNode& b) {
          b.facts.program = {"", "train.py", "ab12", "/venv/bin/python", "", "python cannot run", "", "", ""};
        }) == Codes{"E python"});
}

}  // namespace findings_test
