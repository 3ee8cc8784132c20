#include "proc/machine/gpu_memory.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <future>
#include <memory>
#include <utility>

#include "base/quiet_thread.hpp"
#include "proc/machine/nvml.hpp"

namespace taas {
namespace {

std::string program_name(int pid) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return name;
}

/// By a thread of its own; a default value when it has not answered by then.
template <class Ask>
auto ask_driver(std::chrono::milliseconds patience, Ask ask) {
  using Answer = decltype(ask(std::declval<const Nvml&>()));
  auto answer = std::make_shared<std::promise<Answer>>();
  auto coming = answer->get_future();
  std::thread thread;
  if (!begin_quietly(thread, [answer, ask = std::move(ask)] { answer->set_value(ask(Nvml())); })) return Answer();
  thread.detach();
  return coming.wait_for(patience) == std::future_status::ready ? coming.get() : Answer();
}

}  // namespace

int gpu_of_error(std::string_view text) {
  constexpr std::string_view kMark = "GPU ";
  int index = 0;
  for (auto at = text.find(kMark); at != text.npos; at = text.find(kMark, at + 1)) {
    const auto* begin = text.data() + at + kMark.size();
    auto [end, error] = std::from_chars(begin, text.data() + text.size(), index);
    if (error == std::errc{} && std::string_view(end, text.data() + text.size()).starts_with(" has ")) return index;
  }
  return 0;
}

std::optional<std::string> name_of_visible_gpu(int index, std::optional<std::string_view> visible) {
  if (!visible) return std::to_string(index);
  auto rest = *visible;
  for (; index > 0; --index) {
    auto comma = rest.find(',');
    if (comma == rest.npos) return std::nullopt;
    rest.remove_prefix(comma + 1);
  }
  auto name = rest.substr(0, rest.find(','));
  while (name.starts_with(' ')) name.remove_prefix(1);
  if (name.empty() || name.starts_with('-')) return std::nullopt;
  return std::string(name);
}

GpuOrder read_gpu_order(std::optional<std::string_view> value) {
  return value == "PCI_BUS_ID" ? GpuOrder::kBus : GpuOrder::kFastestFirst;
}

std::vector<GpuMemoryHolder> gpu_memory_holders(const std::string& gpu, GpuOrder order,
                                                std::chrono::milliseconds patience) {
  auto found = ask_driver(patience, [gpu, order](const Nvml& driver) { return driver.holders(gpu, order); });
  for (auto& holder : found) holder.name = program_name(holder.pid);
  std::ranges::stable_sort(found, std::greater(), [](const auto& holder) { return holder.bytes.value_or(0); });
  return found;
}

std::string gpu_trouble(const std::string& gpu, GpuOrder order, std::chrono::milliseconds patience) {
  return ask_driver(patience, [gpu, order](const Nvml& driver) { return driver.trouble(gpu, order); });
}

std::vector<std::optional<GpuDescription>> describe_gpus(const std::vector<std::string>& gpus, GpuOrder order,
                                                         std::chrono::milliseconds patience) {
  if (gpus.empty()) return {};
  return ask_driver(patience, [gpus, order](const Nvml& driver) {
    std::vector<std::optional<GpuDescription>> found;
    for (const auto& gpu : gpus) found.push_back(driver.describe(gpu, order));
    return found;
  });
}

std::optional<DriverLibrary> find_driver_library() {
  auto file = Nvml::file();
  if (!file) return std::nullopt;
  constexpr std::string_view kMark = ".so.";
  std::error_code unknown;
  auto name = std::filesystem::canonical(*file, unknown).filename().string();
  auto at = name.find(kMark);
  if (at == name.npos || name.find('.', at + kMark.size()) == name.npos) return DriverLibrary{};
  return DriverLibrary{name.substr(at + kMark.size())};
}

DriverState ask_driver_state(std::chrono::milliseconds patience) {
  auto state = ask_driver(patience, [](const Nvml& driver) { return std::optional(driver.state()); });
  return state.value_or(DriverState::kUnknown);
}

}  // namespace taas
