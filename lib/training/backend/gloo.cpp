#include <cxxabi.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <torch/csrc/distributed/c10d/ProcessGroupGloo.hpp>
#include <typeinfo>
#include <vector>

#include "taas/error.hpp"
#include "training/backend/backends.hpp"
#include "training/backend/c10_error.hpp"
#include "training/backend/environment.hpp"

namespace gloo::transport::taas_pairs {

/// gloo::transport::tcp::Pair::signalExceptionExternal of the gloo inside libtorch, whose header the wheel lacks: fails
/// what waits for this pair and closes its connection. Weak: null in a libtorch without it.
__attribute__((weak)) std::exception_ptr fail(void* pair, const std::string& why) __asm__(
    "_ZN4gloo9transport3tcp4Pair23signalExceptionExternalERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE");

}  // namespace gloo::transport::taas_pairs

namespace taas {
namespace {

using Gloo = c10d::ProcessGroupGloo;
using Devices = std::vector<std::shared_ptr<::gloo::transport::Device>>;

/// gloo with an abort(), which torch's own leaves empty: what is under way on this rank fails at once, and the other
/// ranks see closed connections instead of waiting for their timeout.
class AbortableGloo : public c10d::ProcessGroupGloo {
 public:
  using ProcessGroupGloo::ProcessGroupGloo;
  void abort() override {
    if (!&gloo::transport::taas_pairs::fail) return;
    for (const auto& context : contexts_) {
      for (int peer = 0; peer < getSize(); ++peer) {
        if (peer == getRank()) continue;
        try {
          const auto& pair = context->getPair(peer);
          if (pair) gloo::transport::taas_pairs::fail(pair.get(), "this rank has aborted the group");
        } catch (const std::exception&) {  // never connected: nothing is to be closed
        }
      }
    }
  }
};

bool is_loopback(const std::string& address) {
  return address == "localhost" || address == "::1" || address.starts_with("127.");
}

Devices choose_devices(const std::string& master_address) {
  const bool lazy = c10d::getDefaultGlooLazyInit();
  const auto interfaces = process_variable("GLOO_SOCKET_IFNAME").value_or("");
  if (interfaces.empty()) {
    return {is_loopback(master_address) ? Gloo::createDeviceForHostname(master_address, lazy)
                                        : Gloo::createDefaultDevice(lazy)};
  }
  // A list: one device each, as torch has it.
  Devices devices;
  std::istringstream list(interfaces + ',');
  for (std::string interface; std::getline(list, interface, ',');) {
    if (interface.empty()) throw ConfigError("GLOO_SOCKET_IFNAME=" + interfaces + " has an empty name in its list");
    devices.push_back(Gloo::createDeviceForInterface(interface, lazy));
  }
  return devices;
}

// Set once.
std::terminate_handler other_end = nullptr;
std::string (*what_begun_last)() = nullptr;

/// Empty for an exception that is not gloo's.
std::string text_of_gloo() {
  try {
    if (const auto error = std::current_exception()) std::rethrow_exception(error);
  } catch (const std::exception& error) {
    if (std::string_view(typeid(error).name()).starts_with("N4gloo")) return one_line(error);
  } catch (...) {  // of no kind that has a text
  }
  return "";
}

/// The line: `error` is gloo's text, "[enforce fail at …] op.preamble.length <= op.nbytes. 4096 vs 4. …".
std::string end_by_gloo(const std::string& operation, const std::string& error) {
  std::smatch sizes;
  const bool has_sizes = std::regex_search(error, sizes, std::regex("([0-9]+) vs ([0-9]+)"));
  const auto came = has_sizes ? sizes[1].str() + " bytes came where " + sizes[2].str() + " were expected"
                              : std::string("gloo has ended this process");
  return "taas: error: " + (operation.empty() ? "a collective" : operation) + ": " + came +
         ": another rank is in another collective, or in this one with another size; to see which, set "
         "TORCH_DISTRIBUTED_DEBUG=DETAIL (InitOptions::check_collectives)";
}

[[noreturn]] void explained_end() {
  const auto error = text_of_gloo();
  if (!error.empty()) std::cerr << end_by_gloo(what_begun_last(), error) + '\n' << std::flush;
  if (error.empty() || other_end != &__gnu_cxx::__verbose_terminate_handler) other_end();
  std::abort();
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

void explain_end_by_gloo(std::string (*begun_last)()) {
  static std::once_flag once;
  std::call_once(once, [begun_last] {
    what_begun_last = begun_last;
    other_end = std::set_terminate(explained_end);
  });
}

}  // namespace taas
