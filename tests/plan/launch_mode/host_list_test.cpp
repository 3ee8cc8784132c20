#include "plan/launch_mode/host_list.hpp"

#include "catch.hpp"

namespace host_list_test {

using namespace taas;
using namespace taas::plan;

namespace {

using Hosts = std::vector<Host>;

std::string error_of(const Result<Hosts>& hosts) {
  REQUIRE(hosts.has_error());
  CHECK(hosts.error().code == ErrorCode::kUsage);
  return hosts.error().message;
}

}  // namespace

TEST_CASE("a list of hosts has names, users and slots") {
  struct Row {
    const char* text;
    Hosts expected;
  };
  const Row rows[] = {{"a", {{"", "a", {}}}},
                      {"a,b:8", {{"", "a", {}}, {"", "b", 8}}},
                      {"user@c", {{"user", "c", {}}}},
                      {"user@c.d-e_f:2, g", {{"user", "c.d-e_f", 2}, {"", "g", {}}}},
                      {"[::1]:2", {{"", "::1", 2}}},
                      {"[fe80::1%eth0]", {{"", "fe80::1%eth0", {}}}},
                      {"fd00::7", {{"", "fd00::7", {}}}},
                      {"10.0.0.1:4", {{"", "10.0.0.1", 4}}}};
  for (const auto& row : rows) {
    CAPTURE(row.text);
    auto hosts = parse_hosts(row.text);
    REQUIRE(hosts.has_value());
    CHECK(*hosts == row.expected);
  }
  CHECK(destination({"user", "c", 2}) == "user@c");
  CHECK(destination({"", "::1", {}}) == "::1");
}

TEST_CASE("a wrong host is named") {
  const char* right = ": not a host, such as node7, node7:8, user@node7 or [::1]:8";
  for (std::string wrong : {"", "a b", "-oProxyCommand=x", "a;b", "@a", "a@", "u@@a", "-u@a", "[]", "a$(b)"}) {
    CHECK(error_of(parse_hosts(wrong)) == wrong + right);
  }
  CHECK(error_of(parse_hosts("a,,b")) == std::string(right));
  CHECK(error_of(parse_hosts("a:0")) == "a:0: 0 is not a number of slots, such as 8");
  CHECK(error_of(parse_hosts("b,a:x")) == "a:x: x is not a number of slots, such as 8");
  CHECK(error_of(parse_hosts("a:")) == "a:: nothing is not a number of slots, such as 8");
  CHECK(parse_hosts("a,b,a:8").value() == std::vector<Host>{{"", "a", 9}, {"", "b", {}}});
  CHECK(parse_hosts(" a, b,\r\n").value() == std::vector<Host>{{"", "a", {}}, {"", "b", {}}});
  CHECK(error_of(parse_hosts("a,u@a")) == "a: named with two users");
}

TEST_CASE("hostfiles of other launchers are read") {
  auto hosts = parse_hostfile(
      "# all\n"
      "\n"
      "a\n"
      "  b:4   # four\r\n"
      "c slots=8\n"
      "user@d slots=2 max_slots=4\n"
      "e slots = 3\n"
      "[::1]:2\n"
      "f slots= 5");
  REQUIRE(hosts.has_value());
  CHECK(*hosts ==
        Hosts{{"", "a", {}}, {"", "b", 4}, {"", "c", 8}, {"user", "d", 2}, {"", "e", 3}, {"", "::1", 2}, {"", "f", 5}});
}

TEST_CASE("a wrong line of a hostfile is named with its number") {
  CHECK(error_of(parse_hostfile("a\n\nb slots=x\n")) == "line 3: slots=x: x is not a number of slots, such as 8");
  CHECK(error_of(parse_hostfile("a slots=")) == "line 1: slots=: nothing is not a number of slots, such as 8");
  CHECK(error_of(parse_hostfile("a gpus=8")) == "line 1: gpus=8: not slots=NUMBER");
  CHECK(parse_hostfile("a\nb\na\n").value() == std::vector<Host>{{"", "a", 2}, {"", "b", {}}});
  CHECK(parse_hostfile("a 4 all.q@a UNDEFINED\nb 2\n").value() == std::vector<Host>{{"", "a", 4}, {"", "b", 2}});
  CHECK(error_of(parse_hostfile("a,b\n")) == "line 1: a,b: not a host, such as node7, node7:8, user@node7 or [::1]:8");
  CHECK(error_of(parse_hostfile("# nobody\n")) == "no host in it");
}

}  // namespace host_list_test
