#include "parse/config_file.hpp"

#include "catch.hpp"

namespace config_file_test {

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

TEST_CASE("values are what the command line would have") {
  auto given = read_config("shutdown-timeout = 1.5\nrdzv-id = 5\nquiet = \"true\"\nprotect = 'a b'\ntee = 3\n");
  REQUIRE(given.has_value());
  CHECK(given->at("shutdown-timeout") == Words{"1.5"});
  CHECK(given->at("rdzv-id") == Words{"5"});
  CHECK(given->at("quiet") == Words{"true"});
  CHECK(given->at("protect") == Words{"a b"});
  CHECK(given->at("tee") == Words{"3"});
  CHECK(read_config("").value().empty());
}

TEST_CASE("a wrong line of a config file is told by its number") {
  CHECK(config_error("nproc-per-nod = 3\n") == "line 1: nproc-per-nod: no such option; did you mean nproc-per-node?");
  CHECK(config_error("\nsomething-else = 3\n") == "line 2: something-else: no such option");
  CHECK(config_error("# sizes\n\n[size]\ngpus = 3\n") == "line 3: [size]: sections are not known");
  CHECK(config_error("config = 'other.toml'\n") == "line 1: config: only for the command line");
  CHECK(config_error("max-restarts = 1\nmax_restarts = 2\n") == "line 2: max_restarts: given twice");
}

TEST_CASE("what is not TOML is not guessed at") {
  CHECK(config_error("gpus = 1\nrole = 'x'\ngpus = 2\n").starts_with("line 3: not valid TOML"));
  CHECK_THAT(config_error("gpus = 1\ngpus = 2\n"), ContainsSubstring("gpus"));
  for (auto text : {"\nprotect = ['a'\n", "\nprotect = 'a\n", "\nrole = one two\n", "\nrole = one\n", "\ngpus: 2\n",
                    "\ngpus\n", "\ngpus = 2 3\n"}) {
    CAPTURE(text);
    CHECK(config_error(text).starts_with("line 2: "));
    CHECK_THAT(config_error(text), ContainsSubstring("texts stand in quotes"));
  }
}

TEST_CASE("a value of the wrong type is refused") {
  CHECK(config_error("gpus = true\n") == "line 1: gpus: one text or number is wanted");
  CHECK(config_error("gpus = [1, 2]\n") == "line 1: gpus: one text or number is wanted");
  CHECK(config_error("role = 2026-01-02\n") == "line 1: role: one text or number is wanted");
  CHECK(config_error("quiet = 3\n") == "line 1: quiet: true or false is wanted");
  CHECK(config_error("protect = ['a', ['b']]\n") == "line 1: protect: a list of texts or numbers is wanted");
  CHECK(config_error("protect = []\n") == "line 1: protect: the list is empty");
  CHECK(config_error("tee = true\n") == "line 1: tee: a list, a text or a number is wanted");
}

TEST_CASE("no text is taken for what it is not, however it begins") {
  for (const char* text : {"[",       "[[",       "[=]",   "[[=]]",    "[.]",      "[a.",      "[a.=]",        ".a = 1",
                           "a.",      "a..b = 1", "a.= 1", "= 1",      "a = {=1}", "a = {,}",  "a = {.b = 1}", "a = [",
                           "a = [,]", "\"",       "'''",   "a = \"\\", "\xff",     "a = \xc3", "[\x01]"}) {
    INFO(text);
    CHECK(config_error(text).starts_with("line 1: "));
  }
}

}  // namespace config_file_test
