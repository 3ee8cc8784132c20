// Any command line, PET_* variables and config file: never a crash or an exception, always options, a text to print, or
// one line of error. An input is three parts with a line "---" between them: arguments, variables and the config file.
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "parse/cli.hpp"
#include "plan/launch_plan.hpp"
#include "start/dry_run.hpp"

using namespace taas;

namespace {

constexpr int kMostRanksDescribed = 64;

void require(bool holds) {
  if (!holds) std::abort();
}

/// Takes the text up to the separator off the front.
std::string take(std::string_view& text, std::string_view separator) {
  auto end = text.find(separator);
  std::string part(text.substr(0, end));
  text.remove_prefix(end == text.npos ? text.size() : end + separator.size());
  return part;
}

std::vector<std::string> lines(std::string_view text) {
  std::vector<std::string> all;
  while (!text.empty()) all.push_back(take(text, "\n"));
  return all;
}

Environment variables(std::string_view text) {
  Environment all;
  for (const auto& line : lines(text)) {
    std::string_view rest(line);
    auto name = take(rest, "=");
    all.emplace(std::move(name), std::string(rest));
  }
  return all;
}

void check_error(const Error& error) {
  require(error.code == ErrorCode::kUsage && !error.message.empty());
  for (unsigned char byte : error.message) require(byte >= ' ' && byte != 0x7f);
}

void check_plan(const plan::Options& options, const plan::Machine& machine) {
  auto plan = plan::make_plan(options, machine, "run");
  if (!plan) {
    require(plan.error().code == ErrorCode::kUsage && !plan.error().message.empty());
    return;
  }
  require(plan->world_size() > 0 && plan->outputs.size() == plan->ranks.size());
  if (plan->world_size() <= kMostRanksDescribed) require(!cli::dry_run(*plan, machine, {"program"}).empty());
}

void run(std::string_view input) noexcept {
  auto arguments = lines(take(input, "\n---\n"));
  auto environment = variables(take(input, "\n---\n"));
  std::string config(input);
  auto outcome = cli::parse(arguments, environment, [&](const std::string&) -> Result<std::string> { return config; });
  if (!outcome) return check_error(outcome.error());
  const auto* options = std::get_if<plan::Options>(&*outcome);
  if (options == nullptr) return;
  for (int gpus : {0, 4}) check_plan(*options, plan::Machine{"here", gpus, 4, environment});
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  run(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
