#include "plan/launch_mode/rendezvous.hpp"

#include "catch.hpp"

namespace rendezvous_test {

using namespace taas;
using namespace taas::plan;

namespace {

const LaunchMode kHere = OneMachine{};

std::string error_of(const RendezvousOptions& options) {
  auto decided = decide_rendezvous(options, kHere);
  REQUIRE(decided.has_error());
  CHECK(decided.error().code == ErrorCode::kUsage);
  return decided.error().message;
}

RendezvousOptions with_endpoint(std::string endpoint) {
  RendezvousOptions options;
  options.endpoint = std::move(endpoint);
  return options;
}

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
    auto decided = decide_rendezvous(with_endpoint(row.endpoint), kHere);
    REQUIRE(decided.has_value());
    CHECK(decided->master_port == row.port);
  }
}

TEST_CASE("--standalone ignores what was set") {
  auto options = with_endpoint("localhost:1");
  options.run_id = "job";
  options.master_port = 2;
  options.standalone = true;
  auto decided = decide_rendezvous(options, kHere);
  REQUIRE(decided.has_value());
  CHECK_FALSE(decided->run_id);
  CHECK_FALSE(decided->master_port);
}

TEST_CASE("wrong ports and backends are named") {
  for (std::string endpoint : {"localhost:", "localhost:x", "localhost:65536", "localhost:-1"}) {
    CHECK(error_of(with_endpoint(endpoint)) ==
          "--rdzv-endpoint " + endpoint + ": the port is not a number up to 65535; say localhost:29500");
  }
  RendezvousOptions options;
  options.master_port = 70000;
  CHECK(error_of(options) == "--master-port 70000: not a port; 0 lets the kernel choose");
  options = {};
  options.backend = "etcd";
  CHECK(error_of(options) == "--rdzv-backend etcd: not available; static and c10d are");
}

TEST_CASE("where nodes join, the port is theirs and the store has its own") {
  auto options = with_endpoint("node7:29500");
  options.master_port = 7;
  CHECK_FALSE(decide_rendezvous(options, Join{"node7", 29500, {}, {}, "", 2, 2})->master_port);
  CHECK(decide_rendezvous(options, OverSsh{})->master_port == 7);
}

TEST_CASE("endpoints are read in all their spellings") {
  CHECK(read_endpoint("[fd00::7]:5")->host == "fd00::7");
  CHECK(read_endpoint("fd00::7")->host == "fd00::7");
  CHECK(read_endpoint(":5")->host.empty());
  for (auto host : {"", "localhost", "127.0.0.1", "127.1.2.3", "::1", "[::1]"}) CHECK(is_loopback(host));
  for (auto host : {"node7", "10.0.0.7", "localhost.example", "[fd00::7]"}) CHECK_FALSE(is_loopback(host));
}

TEST_CASE("one process serves its own store unless a flag of torchrun's says where processes meet") {
  struct Row {
    const char* asked;
    void (*ask)(Options&);
    bool served;
  };
  const Row rows[] = {
      {"nothing", [](Options&) {}, false},
      {"--gpus", [](Options& o) { o.size.gpus = 1; }, false},
      {"--max-restarts", [](Options& o) { o.supervision.max_restarts = 3; }, false},
      {"--store agent", [](Options& o) { o.rendezvous.store = StoreHost::kLauncher; }, true},
      {"--nproc-per-node", [](Options& o) { o.size.nproc_per_node = "1"; }, false},
      {"--nnodes", [](Options& o) { o.size.nnodes = "1"; }, true},
      {"--standalone", [](Options& o) { o.rendezvous.standalone = true; }, true},
      {"--rdzv-backend", [](Options& o) { o.rendezvous.backend = "c10d"; }, true},
      {"--rdzv-endpoint", [](Options& o) { o.rendezvous.endpoint = "localhost"; }, true},
      {"--rdzv-id", [](Options& o) { o.rendezvous.run_id = "job7"; }, true},
      {"--node-rank", [](Options& o) { o.rendezvous.node_rank = 0; }, true},
      {"--master-addr", [](Options& o) { o.rendezvous.master_addr = "localhost"; }, true},
      {"--master-port", [](Options& o) { o.rendezvous.master_port = 29500; }, true},
  };
  for (const auto& row : rows) {
    Options options;
    row.ask(options);
    INFO(row.asked);
    CHECK(launcher_serves_store(options, 1) == row.served);
    CHECK(launcher_serves_store(options, 2));
    options.rendezvous.store = StoreHost::kRankZero;
    CHECK_FALSE(launcher_serves_store(options, 1));
    CHECK_FALSE(launcher_serves_store(options, 2));
  }
}

}  // namespace rendezvous_test
