#include "run/coordinator/nodes/nearest_address.hpp"

#include "catch.hpp"

namespace nearest_address_test {

using namespace taas::run;

TEST_CASE("the address in the network of the first node is taken") {
  CHECK(nearest_address({"192.168.1.7", "10.0.3.7", "10.0.2.9"}, "10.0.2.1") == "10.0.2.9");
  CHECK(nearest_address({"10.0.2.1", "10.0.2.0"}, "10.0.2.1") == "10.0.2.1");
  CHECK(nearest_address({"10.0.0.1", "fd00::2"}, "fd00::1") == "fd00::2");
  CHECK(nearest_address({"fe80::5%eth1", "fd00::2"}, "fe80::9") == "fe80::5%eth1");
}

TEST_CASE("the first one of equals, any when none is comparable, and the reference when there is none") {
  CHECK(nearest_address({"172.16.0.1", "172.17.0.1"}, "10.0.0.1") == "172.16.0.1");
  CHECK(nearest_address({"fd00::2"}, "10.0.0.1") == "fd00::2");
  CHECK(nearest_address({}, "127.0.0.1") == "127.0.0.1");
}

TEST_CASE("an endpoint has brackets where the address has colons") {
  CHECK(endpoint_of("10.0.0.1", 80) == "10.0.0.1:80");
  CHECK(endpoint_of("fd00::1", 80) == "[fd00::1]:80");
}

}  // namespace nearest_address_test
