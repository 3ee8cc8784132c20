#include "arguments.hpp"

#include <sstream>

#include "catch.hpp"

namespace arguments_test {

using namespace taas;
using namespace taas::cli;

namespace {

using Words = std::vector<std::string>;

std::string config_error(const std::string& text) {
  auto given = read_config(text);
  REQUIRE(given.has_error());
  return given.error().message;
}

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

TEST_CASE("a config file names flags as the command line does") {
  auto given = read_config(
      "# a comment\n"
      "nproc-per-node = \"3\"\n"
      "max_restarts = 2\n"
      "standalone = true\n"
      "protect = [\"a\", \"b\"]\n"
      "tee = \"0:1,1:2\"\n"
      "local-ranks-filter = [0, 1]\n");
  REQUIRE(given.has_value());
  CHECK(given->at("nproc-per-node") == Words{"3"});
  CHECK(given->at("max-restarts") == Words{"2"});
  CHECK(given->at("standalone") == Words{"true"});
  CHECK(given->at("protect") == Words{"a", "b"});
  CHECK(given->at("tee") == Words{"0:1,1:2"});
  CHECK(given->at("local-ranks-filter") == Words{"0,1"});
  CHECK(given->size() == 6);
}

TEST_CASE("a wrong config file is told by the line's name") {
  CHECK(config_error("nproc-per-nod = 3\n") == "nproc-per-nod: no such option; did you mean nproc-per-node?");
  CHECK(config_error("something-else = 3\n") == "something-else: no such option");
  CHECK(config_error("[size]\ngpus = 3\n") == "[size]: sections are not known");
  CHECK(config_error("role = one two\n") == "role: one value is wanted, in quotes if it is a text");
  CHECK(config_error("gpus = 1\nrole = x\ngpus = 2\n") == "gpus: given twice");
  CHECK(config_error("config = other.toml\n") == "config: only for the command line");
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
