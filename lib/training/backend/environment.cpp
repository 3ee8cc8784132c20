#include "training/backend/environment.hpp"

#include <charconv>
#include <cstdlib>
#include <limits>

#include "taas/error.hpp"

namespace taas {
namespace {

std::string required(const Lookup& lookup, const std::string& name) {
  auto text = lookup(name);
  if (!text || text->empty()) {
    throw ConfigError(name + " is not set: start the program with taas-run or torchrun, or unset RANK and WORLD_SIZE");
  }
  return *text;
}

int number(const std::string& name, const std::string& text, int low, int high) {
  int value = 0;
  const auto* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && stop == end && value >= low && value <= high) return value;
  throw ConfigError(name + "=" + text + " is not a whole number from " + std::to_string(low) + " to " +
                    std::to_string(high));
}

int number_or(const Lookup& lookup, const std::string& name, int fallback, int low, int high) {
  auto text = lookup(name);
  return text && !text->empty() ? number(name, *text, low, high) : fallback;
}

void check_rank(const char* rank_name, int rank, const char* size_name, int size) {
  if (rank < size) return;
  throw ConfigError(std::string(rank_name) + "=" + std::to_string(rank) + " must be below " + size_name + "=" +
                    std::to_string(size));
}

}  // namespace

Environment read_environment(const Lookup& lookup) {
  constexpr int kMany = std::numeric_limits<int>::max();
  Environment environment;
  if (!lookup("RANK") && !lookup("WORLD_SIZE")) return environment;

  environment.world_size = number("WORLD_SIZE", required(lookup, "WORLD_SIZE"), 1, kMany);
  environment.rank = number("RANK", required(lookup, "RANK"), 0, kMany);
  check_rank("RANK", environment.rank, "WORLD_SIZE", environment.world_size);
  environment.local_rank = number_or(lookup, "LOCAL_RANK", environment.rank, 0, kMany);
  environment.local_world_size = number_or(lookup, "LOCAL_WORLD_SIZE", environment.world_size, 1, kMany);
  check_rank("LOCAL_RANK", environment.local_rank, "LOCAL_WORLD_SIZE", environment.local_world_size);
  environment.devices_per_rank = number_or(lookup, "TAAS_DEVICES_PER_RANK", 1, 1, kMany);
  if (environment.world_size == 1) return environment;

  environment.master_address = required(lookup, "MASTER_ADDR");
  environment.master_port = static_cast<std::uint16_t>(
      number("MASTER_PORT", required(lookup, "MASTER_PORT"), 1, std::numeric_limits<std::uint16_t>::max()));
  environment.launcher_has_store = lookup("TORCHELASTIC_USE_AGENT_STORE") == "True";
  environment.restart_count = number_or(lookup, "TORCHELASTIC_RESTART_COUNT", 0, 0, kMany);
  return environment;
}

std::optional<std::string> process_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value ? std::optional<std::string>(value) : std::nullopt;
}

}  // namespace taas
