#include "documents/completion.hpp"

#include "catch.hpp"
#include "documents/man_page.hpp"
#include "flags/flags.hpp"
#include "parse/cli.hpp"

namespace completion_test {

using namespace taas;
using namespace taas::cli;

namespace {

std::string script(std::string_view shell) {
  auto made = completion(shell);
  if (!made) FAIL(made.error().message);
  return *made;
}

}  // namespace

TEST_CASE("choices are the words in lower case of a flag's value") {
  CHECK(choices(*find_flag("color")) == std::vector<std::string_view>{"auto", "always", "never"});
  CHECK(choices(*find_flag("nproc-per-node")) == std::vector<std::string_view>{"auto", "gpu", "cpu"});
  CHECK(choices(*find_flag("gpus")).empty());
  CHECK(choices(*find_flag("json")).empty());
}

TEST_CASE("every choice that is offered is accepted") {
  for (const auto* flag : shown_flags()) {
    for (auto choice : choices(*flag)) {
      plan::Options options;
      CAPTURE(flag->name, choice);
      CHECK(flag->apply(options, {std::string(choice)}).has_value());
    }
  }
}

TEST_CASE("a value is completed by its kind") {
  CHECK(offer(*find_flag("config")) == Offer::kFiles);
  CHECK(offer(*find_flag("protect")) == Offer::kFolders);
  CHECK(offer(*find_flag("color")) == Offer::kChoices);
  CHECK(offer(*find_flag("gpus")) == Offer::kNothing);
}

TEST_CASE("completions and the manual page know every flag of the help, and no other") {
  auto bash = script("bash"), zsh = script("zsh"), fish = script("fish"), page = man_page();
  for (const auto& group : flag_groups()) {
    for (const auto& flag : group.flags) {
      CAPTURE(flag.name);
      bool shown = flag.origin != Flag::Origin::kInternal;
      auto name = std::string(flag.name);
      CHECK((bash.find(" --" + name + " ") != bash.npos) == shown);
      CHECK((zsh.find("--" + name + (flag.takes_value() ? "=" : "")) != zsh.npos) == shown);
      CHECK((fish.find(" -l " + name + " ") != fish.npos) == shown);
      std::string dashed;
      for (char letter : name) dashed += letter == '-' ? std::string("\\-") : std::string(1, letter);
      CHECK((page.find("\\fB\\-\\-" + dashed + "\\fR") != page.npos) == shown);
    }
  }
}

TEST_CASE("quotes in a help text do not end the shells' strings") {
  CHECK(in_quotes("launcher's") == "'launcher'\\''s'");
}

TEST_CASE("other shells are refused by name") {
  auto outcome = parse(std::vector<std::string>{"--print-completion", "tcsh"}, {}, {});
  REQUIRE(outcome.has_error());
  CHECK(outcome.error().message == "--print-completion tcsh: not one of bash, zsh, fish");
  auto printed = parse(std::vector<std::string>{"--print-completion=zsh"}, {}, {});
  REQUIRE(printed.has_value());
  CHECK(std::get<PrintAndExit>(*printed).text.starts_with("#compdef taas-run"));
}

}  // namespace completion_test
