#include "catch.hpp"
#include "helpers.hpp"
#include "ui/json_renderer.hpp"
#include "ui/live_renderer.hpp"
#include "ui/plain_renderer.hpp"
#include "ui/victim_folding.hpp"

namespace make_renderer_test {

using namespace taas;
using namespace taas::ui;

namespace {

constexpr Terminal kTerminal{true, true, true, 100};

plan::LaunchPlan two_ranks() {
  plan::LaunchPlan plan;
  plan.nodes = {{NodeIndex{0}, "host-a", false, Rank{0}, 2}};
  plan.ranks = place_ranks({{NodeIndex{0}, Rank{0}, 2}});
  plan.outputs = {{true, true}, {}};
  return plan;
}

plan::Machine machine(std::map<std::string, std::string> environment) {
  plan::Machine result;
  result.environment = std::move(environment);
  return result;
}

RendererOptions::Kind kind(const plan::LaunchPlan& plan, const char* term, Terminal terminal = kTerminal) {
  return renderer_options(plan, machine({{"TERM", term}}), terminal, at_ms(0)).kind;
}

}  // namespace

TEST_CASE("the renderer fits the terminal and the options") {
  using Kind = RendererOptions::Kind;
  auto plan = two_ranks();
  CHECK(kind(plan, "xterm") == Kind::kLive);
  CHECK(kind(plan, "dumb") == Kind::kPlain);
  CHECK(kind(plan, "") == Kind::kPlain);
  CHECK(kind(plan, "xterm", {true, false, false, 80}) == Kind::kPlain);
  CHECK(kind(plan, "xterm", {false, true, false, 80}) == Kind::kPlain);
  CHECK(kind(plan, "xterm", {true, true, false, 80}) == Kind::kPlain);  // two terminals
  plan.options.output.color = plan::Color::kNever;
  CHECK(kind(plan, "xterm") == Kind::kPlain);
  plan.options.output.color = plan::Color::kAlways;
  CHECK(kind(plan, "xterm", {}) == Kind::kPlain);
  plan.options.output.color = plan::Color::kAuto;
  plan.options.output.verbosity = plan::Verbosity::kQuiet;
  CHECK(kind(plan, "xterm") == Kind::kPlain);
  plan.options.output.json = true;
  CHECK(kind(plan, "xterm") == Kind::kJson);
}

TEST_CASE("logs of CI keep every drawing, so that there are none") {
  using Kind = RendererOptions::Kind;
  auto in_ci = [](const char* value) {
    auto environment = machine({{"TERM", "xterm"}, {"CI", value}});
    return renderer_options(two_ranks(), environment, kTerminal, at_ms(0)).kind;
  };
  CHECK(in_ci("true") == Kind::kPlain);
  CHECK(in_ci("1") == Kind::kPlain);
  CHECK(in_ci("false") == Kind::kLive);
  CHECK(in_ci("") == Kind::kLive);
}

TEST_CASE("nor are there any in a notebook's cell, and neither is colour on a terminal without a size") {
  auto cell = machine({{"TERM", "xterm-color"}, {"JPY_PARENT_PID", "7"}});
  auto options = renderer_options(two_ranks(), cell, kTerminal, at_ms(0));
  CHECK((options.kind == RendererOptions::Kind::kPlain && options.stderr_style.colored()));
  auto terminal = kTerminal;
  terminal.has_size = false;
  options = renderer_options(two_ranks(), machine({{"TERM", "xterm"}}), terminal, at_ms(0));
  CHECK((options.kind == RendererOptions::Kind::kPlain && !options.stderr_style.colored()));
}

TEST_CASE("prefixes come from the flag, else from torchrun's variable") {
  auto plan = two_ranks();
  plan.options.rendezvous.role = "trainer";
  CHECK(renderer_options(plan, machine({}), kTerminal, at_ms(0)).prefixes.empty());
  auto environment = machine({{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "$rank|"}});
  CHECK(renderer_options(plan, environment, kTerminal, at_ms(0)).prefixes == std::vector<std::string>{"0|", "1|"});
  plan.options.output.prefix_template = "${role_name}@${hostname}:${local_rank} ";
  CHECK(renderer_options(plan, environment, kTerminal, at_ms(0)).prefixes ==
        std::vector<std::string>{"trainer@host-a:0 ", "trainer@host-a:1 "});
}

TEST_CASE("each stream decides on colour for itself") {
  auto options = renderer_options(two_ranks(), machine({{"TERM", "xterm"}}), {false, true, false, 80}, at_ms(0));
  CHECK_FALSE(options.stdout_style.colored());
  CHECK(options.stderr_style.colored());
}

TEST_CASE("each kind makes its renderer") {
  TextSink out, err;
  auto options = options_for(1);
  CHECK(dynamic_cast<VictimFolding*>(make_renderer(options, out, err).get()) != nullptr);
  options.verbosity = plan::Verbosity::kVerbose;
  CHECK(dynamic_cast<PlainRenderer*>(make_renderer(options, out, err).get()) != nullptr);
  options.kind = RendererOptions::Kind::kLive;
  CHECK(dynamic_cast<LiveRenderer*>(make_renderer(options, out, err).get()) != nullptr);
  options.kind = RendererOptions::Kind::kJson;
  CHECK(dynamic_cast<JsonRenderer*>(make_renderer(options, out, err).get()) != nullptr);
}

}  // namespace make_renderer_test
