#include "run/coordinator/nodes/host_history.hpp"

#include "catch.hpp"
#include "run/scenario.hpp"

namespace host_history_test {

using namespace taas;
using namespace taas::run;

namespace {

Hello host(int order, std::string name = "") {
  Hello made;
  made.order = order;
  made.hostname = std::move(name);
  return made;
}

}  // namespace

TEST_CASE("a host that was lost pauses longer each time") {
  HostHistory hosts;
  hosts.lose(host(1), at_ms(0), at_ms(0), Blame::kHost);
  CHECK(hosts.is_barred(host(1), at_ms(999)));
  CHECK_FALSE(hosts.is_barred(host(1), at_ms(1000)));
  hosts.arrive(host(1));
  hosts.lose(host(1), at_ms(1000), at_ms(1000), Blame::kHost);
  CHECK(hosts.is_barred(host(1), at_ms(2999)));
  CHECK_FALSE(hosts.is_barred(host(1), at_ms(3000)));
}

TEST_CASE("a host that has been there for long is as good as a new one") {
  HostHistory hosts;
  for (int i = 0; i < 3; ++i) hosts.lose(host(1), at_ms(0), at_ms(0), Blame::kHost);
  hosts.lose(host(1), at_ms(0), at_ms(60000), Blame::kHost);
  CHECK_FALSE(hosts.is_barred(host(1), at_ms(61000)));
}

TEST_CASE("a host that is not to blame may come back at once") {
  HostHistory hosts;
  hosts.lose(host(1), at_ms(0), at_ms(0), Blame::kCoordinator);
  CHECK_FALSE(hosts.is_barred(host(1), at_ms(0)));
  CHECK(hosts.count_lost() == 1);
}

TEST_CASE("a lost host with a place in the list is started again once a pause") {
  HostHistory hosts;
  hosts.lose(host(1), at_ms(0), at_ms(0), Blame::kHost);
  hosts.lose(host(-1, "newcomer"), at_ms(0), at_ms(0), Blame::kHost);
  CHECK(hosts.next_start() == at_ms(1000));
  CHECK(hosts.hosts_to_start(at_ms(999)).empty());
  CHECK(hosts.hosts_to_start(at_ms(1000)) == std::vector{1});
  CHECK(hosts.was_started_again(1));
  CHECK(hosts.hosts_to_start(at_ms(1001)).empty());
  hosts.arrive(host(1));
  CHECK_FALSE(hosts.next_start().has_value());
}

TEST_CASE("a host that failed before it was ever there will not take part, unless it comes") {
  HostHistory hosts;
  hosts.fail(2, "hostc: no route", at_ms(0));
  CHECK(hosts.has_failed(2));
  CHECK(hosts.knows(2));
  CHECK(hosts.failures() == std::vector<std::string>{"hostc: no route"});
  CHECK(hosts.count_missing() == 1);
  CHECK(hosts.count_lost() == 0);
  hosts.arrive(host(2));
  CHECK_FALSE(hosts.has_failed(2));
}

TEST_CASE("a host that was there before may come back though an attempt to start it failed") {
  HostHistory hosts;
  hosts.lose(host(2), at_ms(0), at_ms(0), Blame::kHost);
  hosts.fail(2, "hostc: no route", at_ms(1000));
  CHECK_FALSE(hosts.has_failed(2));
  CHECK(hosts.next_start() == at_ms(3000));
}

}  // namespace host_history_test
