#include "plan/options/launch_settings.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace taas::plan {
namespace {

// Of a session on a machine, its terminal or its service manager.
constexpr std::string_view kNames[] = {
    "_", "COLORTERM", "COLUMNS", "DISPLAY", "HOME", "HOST", "HOSTNAME", "INVOCATION_ID", "JOURNAL_STREAM", "LINES",
    "LISTEN_FDS", "LISTEN_PID", "LOGNAME", "MAIL", "NOTIFY_SOCKET", "OLDPWD", "PWD", "SHELL", "SHLVL", "STY", "TEMP",
    "TEMPDIR", "TMP", "TMPDIR", "TTY", "USER", "WAYLAND_DISPLAY", "WINDOWID", "XAUTHORITY",
    // Devices of this machine, by their numbers or ids.
    "ASCEND_RT_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "HABANA_VISIBLE_DEVICES",
    "HABANA_VISIBLE_MODULES", "HIP_VISIBLE_DEVICES", "HLS_MODULE_ID", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
    // Its place in the network.
    "GLOO_SOCKET_IFNAME", "NCCL_HOSTID", "NCCL_IB_GID_INDEX", "NCCL_IB_HCA", "NCCL_OOB_NET_IFNAME",
    "NCCL_SOCKET_IFNAME", "NCCL_TOPO_FILE", "TP_SOCKET_IFNAME",
    // For the launcher.
    kTokenVariable};
constexpr std::string_view kPrefixes[] = {"DBUS_",  "SSH_",    "TERM",  "TMUX",    "XDG_",               // sessions
                                          "FI_",    "UCX_",                                              // networks
                                          "SLURM_", "SLURMD_", "SRUN_", "SBATCH_", "SALLOC_",            // batch jobs
                                          "HYDRA_", "OMPI_",   "PALS_", "PET_",    "PMI",     "PRTE_"};  // launchers

/// Of the machine where it has one: drivers and networks need other libraries on each.
constexpr const char* kLibraryPath = "LD_LIBRARY_PATH";

bool stays(std::string_view name) {
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames) ||
         std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::map<std::string, std::string> forwarded_environment(const std::map<std::string, std::string>& environment) {
  std::map<std::string, std::string> forwarded;
  std::copy_if(environment.begin(), environment.end(), std::inserter(forwarded, forwarded.end()),
               [](const auto& variable) { return !stays(variable.first); });
  return forwarded;
}

void bring_along(const std::map<std::string, std::string>& forwarded, std::map<std::string, std::string>& environment) {
  for (const auto& [name, value] : forwarded) {
    if (name == kLibraryPath) {
      environment.try_emplace(name, value);
    } else {
      environment.insert_or_assign(name, value);
    }
  }
}

}  // namespace taas::plan
