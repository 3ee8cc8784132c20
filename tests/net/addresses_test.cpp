#include "net/addresses.hpp"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "catch.hpp"

namespace addresses_test {

using namespace taas;
using namespace taas::net;

namespace {

boost::asio::ip::address parsed(const std::string& text) { return boost::asio::ip::make_address(text); }

}  // namespace

TEST_CASE("candidates are this machine's, IPv4 first, never loopback or link-local") {
  const auto candidates = candidate_addresses();
  REQUIRE(candidates.has_value());
  CHECK(std::is_partitioned(candidates->begin(), candidates->end(),
                            [](const auto& text) { return parsed(text).is_v4(); }));
  for (const auto& text : *candidates) {
    INFO(text);
    CHECK_FALSE(parsed(text).is_loopback());
    CHECK_FALSE((parsed(text).is_v6() && parsed(text).to_v6().is_link_local()));
    CHECK(text.rfind("169.254.", 0) != 0);
    const auto interface = interface_of(text);
    CHECK_FALSE(interface.empty());
    const auto own = candidate_addresses(interface).value();
    CHECK(std::count(own.begin(), own.end(), text) == 1);
  }
}

TEST_CASE("an interface that is named is taken, loopback too") {
  const auto loopback = candidate_addresses("lo");
  REQUIRE(loopback.has_value());
  CHECK(loopback->front() == "127.0.0.1");
}

TEST_CASE("an interface that is not there is refused with those there are") {
  const auto none = candidate_addresses("eth77");
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code == ErrorCode::kUsage);
  CHECK_THAT(none.error().message, ContainsSubstring("'eth77'") && ContainsSubstring(": there are "));
  CHECK_THAT(none.error().message, ContainsSubstring(" lo"));
}

TEST_CASE("an address belongs to an interface, or to none here") {
  CHECK(interface_of("127.0.0.1") == "lo");
  CHECK(interface_of("192.0.2.1").empty());
  CHECK(interface_of("localhost").empty());
}

}  // namespace addresses_test
