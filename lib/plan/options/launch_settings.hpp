#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <map>
#include <string>

#include "plan/options/options.hpp"

namespace taas::plan {

/// kGpu: each rank has a GPU wherever its node has any.
enum class Device { kCpu, kGpu };

/// What every node of a run has to know; travels to agents as JSON.
struct LaunchSettings {
  std::string run_id;
  Device device = Device::kCpu;
  bool simulated = false;   ///< one machine plays several nodes: they share its cores and GPUs
  int world_size = 1;       ///< of a full world
  int restarts_before = 0;  ///< of this job, when a batch system has started it again
  Options options;
  std::map<std::string, std::string> environment;  ///< forwarded_environment() of the machine that the user is on
  std::string working_directory;                   ///< there
};

// clang-format off
BOOST_DESCRIBE_ENUM(Device, kCpu, kGpu)
BOOST_DESCRIBE_STRUCT(LaunchSettings, (), (run_id, device, simulated, world_size, restarts_before, options, environment,
                                           working_directory))
// clang-format on

/// The variable that holds the secret of a run whose nodes join by themselves. It is for the launcher alone.
inline constexpr const char* kTokenVariable = "TAAS_TOKEN";

/// What of an environment is the user's wish and goes to nodes that the launcher starts. Left out is what belongs to
/// one machine (its devices and its network too), one session, one batch job or the launcher: docs/environment.md has
/// the list.
std::map<std::string, std::string> forwarded_environment(const std::map<std::string, std::string>& environment);

/// Sets what was forwarded over the environment of a node that the launcher has started. LD_LIBRARY_PATH is the node's
/// where it has one.
void bring_along(const std::map<std::string, std::string>& forwarded, std::map<std::string, std::string>& environment);

}  // namespace taas::plan
