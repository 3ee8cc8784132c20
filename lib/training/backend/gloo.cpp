#include <memory>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <vector>

#include "taas/error.hpp"
#include "training/backend/abortable_gloo.hpp"
#include "training/backend/backends.hpp"
#include "training/backend/environment.hpp"

namespace taas {
namespace {

using Gloo = c10d::ProcessGroupGloo;
using Devices = std::vector<std::shared_ptr<::gloo::transport::Device>>;

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

/// GLOO_SOCKET_IFNAME is a list: one device each, as torch has it.
Devices devices_of(const std::string& interfaces, bool lazy) {
  Devices devices;
  std::size_t begin = 0;
  while (begin <= interfaces.size()) {
    auto end = std::min(interfaces.find(',', begin), interfaces.size());
    auto interface = interfaces.substr(begin, end - begin);
    if (interface.empty()) throw ConfigError("GLOO_SOCKET_IFNAME=" + interfaces + " has an empty name in its list");
    devices.push_back(Gloo::createDeviceForInterface(interface, lazy));
    begin = end + 1;
  }
  return devices;
}

Devices choose_devices(const std::string& master_address) {
  const bool lazy = c10d::getDefaultGlooLazyInit();
  if (auto interfaces = process_variable("GLOO_SOCKET_IFNAME"); interfaces && !interfaces->empty()) {
    return devices_of(*interfaces, lazy);
  }
  if (is_loopback(master_address)) return {Gloo::createDeviceForHostname(master_address, lazy)};
  return {Gloo::createDefaultDevice(lazy)};
}

}  // namespace

c10::intrusive_ptr<c10d::Backend> make_gloo(const BackendArguments& arguments, const std::string& master_address) {
  auto options = Gloo::Options::create(arguments.timeout);
  options->devices = choose_devices(master_address);
  options->threads = 2 * static_cast<int>(options->devices.size());
  auto gloo = c10::make_intrusive<AbortableGloo>(arguments.store, arguments.rank, arguments.world_size, options);
  gloo->setGroupUid(arguments.group_uid);
  return gloo;
}

}  // namespace taas
