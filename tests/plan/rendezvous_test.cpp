#include "plan/rendezvous.hpp"

#include "catch.hpp"

using namespace taas;
using namespace taas::plan;

namespace {

std::string error_of(const RendezvousOptions& options, int nodes) {
  auto decided = decide_rendezvous(options, nodes);
  REQUIRE(decided.has_error());
  CHECK(decided.error().code == ErrorCode::kUsage);
  return decided.error().message;
}

RendezvousOptions with_endpoint(std::string endpoint) {
  RendezvousOptions options;
  options.endpoint = std::move(endpoint);
  return options;
}

constexpr const char* kOneMachine = "more machines come with a later version of taas-run: this one runs on one machine";

}  // namespace

TEST_CASE("the port of the endpoint becomes the store's") {
  struct Row {
    const char* endpoint;
    std::optional<int> port;
  };
  const Row rows[] = {{"", {}},
                      {"localhost", {}},
                      {"localhost:0", 0},
                      {"localhost:29500", 29500},
                      {"node7:29500", 29500},
                      {"[::1]:65535", 65535},
                      {"[::1]", {}},
                      {"::1", {}},
                      {":29400", 29400}};
  for (const auto& row : rows) {
    CAPTURE(row.endpoint);
    auto decided = decide_rendezvous(with_endpoint(row.endpoint), 1);
    REQUIRE(decided.has_value());
    CHECK(decided->master_port == row.port);
  }
}

TEST_CASE("--standalone ignores what was set") {
  auto options = with_endpoint("localhost:1");
  options.run_id = "job";
  options.master_port = 2;
  options.standalone = true;
  auto decided = decide_rendezvous(options, 1);
  REQUIRE(decided.has_value());
  CHECK_FALSE(decided->run_id);
  CHECK_FALSE(decided->master_port);
}

TEST_CASE("wrong ports and backends are named") {
  for (std::string endpoint : {"localhost:", "localhost:x", "localhost:65536", "localhost:-1"}) {
    CHECK(error_of(with_endpoint(endpoint), 1) ==
          "--rdzv-endpoint " + endpoint + ": the port is not a number up to 65535; say localhost:29500");
  }
  RendezvousOptions options;
  options.master_port = 70000;
  CHECK(error_of(options, 1) == "--master-port 70000: not a port; 0 lets the kernel choose");
  options = {};
  options.backend = "etcd";
  CHECK(error_of(options, 1) == "--rdzv-backend etcd: not available; static and c10d are");
}

TEST_CASE("one node of several machines is refused, not silently something else") {
  RendezvousOptions options;
  options.node_rank = 1;
  CHECK(error_of(options, 1) == std::string("--node-rank 1: ") + kOneMachine);
  options.node_rank = 0;
  CHECK(decide_rendezvous(options, 1).has_value());
  CHECK(error_of(options, 2) == std::string("--nnodes 2 with --node-rank: ") + kOneMachine);
  CHECK(error_of(with_endpoint("node7:29500"), 2) ==
        std::string("--nnodes 2 with --rdzv-endpoint node7:29500: ") + kOneMachine);
  options = {};
  options.master_addr = "10.0.0.7";
  CHECK(decide_rendezvous(options, 1).has_value());
  CHECK(error_of(options, 3) == std::string("--nnodes 3 with --master-addr 10.0.0.7: ") + kOneMachine);
  for (auto host : {"localhost", "127.0.0.1", "::1", "[::1]"}) {
    options.master_addr = host;
    CHECK(decide_rendezvous(options, 3).has_value());
  }
  CHECK(decide_rendezvous(with_endpoint("localhost:29500"), 2).has_value());
}
