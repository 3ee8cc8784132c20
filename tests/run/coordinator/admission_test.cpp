#include "run/coordinator/admission.hpp"

#include "catch.hpp"
#include "coordinator_parts.hpp"

namespace admission_test {

using namespace taas;
using namespace taas::run;

namespace {

/// Agent 0 is on host 0.
struct Door : Parts {
  Door() {
    add(1);
    membership.arrive(AgentId{0}, hello(0), at_ms(0));
  }

  Membership membership{membership_policy(policy)};
  DataNodes data_nodes{policy.data};
  Admission admission{policy.version, agents, membership, data_nodes};
};

}  // namespace

TEST_CASE("a place that is free is given") { CHECK(Door().admission.refusal(hello(1)).empty()); }

TEST_CASE("another release and a second agent of a place are refused") {
  Door run;
  auto other = hello(1);
  other.version = "0.9";
  CHECK(run.admission.refusal(other) ==
        fmt::format("it runs taas-run 0.9 (protocol {0}), this run 1.0 (protocol {0}): install the same on all nodes",
                    kProtocolVersion));
  CHECK(run.admission.refusal(hello(0)) == "host0 is node 0 already");
}

TEST_CASE("a host that was started again may have two agents, of which one is enough") {
  Door run;
  CHECK_FALSE(run.admission.came_back_twice(hello(0)));
  run.membership.lose(AgentId{0}, at_ms(0));
  run.membership.hosts_to_start(at_ms(60000));
  run.membership.arrive(AgentId{0}, hello(0), at_ms(61000));
  CHECK(run.admission.came_back_twice(hello(0)));
}

}  // namespace admission_test
