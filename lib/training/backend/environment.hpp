#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace taas {

/// What the launcher's variables say about this process.
struct Environment {
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;
  int local_world_size = 1;
  int devices_per_rank = 1;  ///< TAAS_DEVICES_PER_RANK
  std::string master_address;
  std::uint16_t master_port = 0;
  bool launcher_has_store = false;  ///< TORCHELASTIC_USE_AGENT_STORE: it is up already, and every rank is a client
  int restart_count = 0;
};

using Lookup = std::function<std::optional<std::string>(const std::string& name)>;

/// Throws ConfigError naming the variable and its value. MASTER_ADDR and MASTER_PORT are needed from two ranks on.
Environment read_environment(const Lookup& lookup);

/// The variables of this process.
std::optional<std::string> process_variable(const std::string& name);

}  // namespace taas
