#include "parse/arguments.hpp"

#include <sstream>

#include "catch.hpp"

namespace arguments_test {

using namespace taas;
using namespace taas::cli;

namespace {

using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("unique beginnings of options and -t=3 are understood, as torchrun's parser has it") {
  auto given = read_arguments(Words{"--nproc", "4", "--max_r=2", "-t=3", "-qr=1", "--node", "1", "--role", "-t=3"});
  REQUIRE(given.has_value());
  CHECK(given->at("nproc-per-node") == Words{"4"});
  CHECK(given->at("max-restarts") == Words{"2"});
  CHECK(given->at("tee") == Words{"3"});
  CHECK(given->at("redirects") == Words{"1"});
  CHECK(given->at("node-rank") == Words{"1"});  // torchrun's own before --node-timeout
}

TEST_CASE("values are kept as they were written, in order") {
  auto given = read_arguments(Words{"--gpus", "4", "--nproc_per_node=8", "-t3", "-qm", "--protect", "a", "--protect=b",
                                    "--role=", "--master-addr", "[::1]", "--gpus", "-5"});
  REQUIRE(given.has_value());
  CHECK(given->at("gpus") == Words{"4", "-5"});
  CHECK(given->at("nproc-per-node") == Words{"8"});
  CHECK(given->at("tee") == Words{"3"});
  CHECK(given->at("quiet") == Words{"true"});
  CHECK(given->at("module") == Words{"true"});
  CHECK(given->at("protect") == Words{"a", "b"});
  CHECK(given->at("role") == Words{""});
  CHECK(given->at("master-addr") == Words{"[::1]"});
  CHECK(given->size() == 8);
}

TEST_CASE("the help names every flag once and fits a terminal") {
  auto help = help_text();
  std::istringstream lines(help);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    CHECK(line.size() <= 80);
  }
  for (const auto& group : flag_groups()) {
    CHECK_THAT(help, ContainsSubstring(std::string(group.heading)));
    for (const auto& flag : group.flags) {
      bool named = help.find("--" + std::string(flag.name) + " ") != std::string::npos;
      CHECK(named == (flag.origin != Flag::Origin::kInternal));
    }
  }
}

}  // namespace arguments_test
