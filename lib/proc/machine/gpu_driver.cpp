#include "proc/machine/gpu_driver.hpp"

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
  auto run = [answer, ask = std::move(ask)] {
    auto found = ask(Nvml());  // which is gone before it is told
    answer->set_value(std::move(found));
  };
  if (!begin_quietly(thread, std::move(run))) return Answer();
  if (coming.wait_for(patience) != std::future_status::ready) {
    thread.detach();
    return Answer();
  }
  thread.join();
  return coming.get();
}

/// In their order; nothing for one whose number could be another one's.
template <class Answer>
std::vector<std::optional<Answer>> ask_of_each(const std::vector<std::string>& gpus, bool is_by_bus,
                                               std::chrono::milliseconds patience,
                                               std::optional<Answer> (Nvml::*ask)(const std::string&) const) {
  if (gpus.empty()) return {};
  return ask_driver(patience, [gpus, is_by_bus, ask](const Nvml& driver) {
    const bool by_number = is_by_bus || driver.are_alike();
    std::vector<std::optional<Answer>> found;
    for (const auto& gpu : gpus) {
      const bool certain = by_number || !Nvml::is_number(gpu);
      found.push_back(certain ? (driver.*ask)(gpu) : std::nullopt);
    }
    return found;
  });
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

std::vector<std::string> names_of_visible_gpus(int count, std::optional<std::string_view> visible) {
  std::vector<std::string> names;
  for (int index = 0; index < count; ++index) {
    names.push_back(name_of_visible_gpu(index, visible).value_or(std::to_string(index)));
  }
  return names;
}

std::vector<GpuMemoryHolder> gpu_memory_holders(const std::string& gpu, bool is_by_bus,
                                                std::chrono::milliseconds patience) {
  auto found = ask_driver(patience, [gpu, is_by_bus](const Nvml& driver) {
    return is_by_bus || !Nvml::is_number(gpu) || driver.are_alike() ? driver.holders(gpu)
                                                                    : std::vector<GpuMemoryHolder>();
  });
  for (auto& holder : found) holder.name = program_name(holder.pid);
  std::ranges::stable_sort(found, std::greater(), [](const auto& holder) { return holder.bytes.value_or(0); });
  return found;
}

std::vector<std::optional<GpuDescription>> describe_gpus(const std::vector<std::string>& gpus,
                                                         std::chrono::milliseconds patience) {
  if (gpus.empty()) return {};
  return ask_driver(patience, [gpus](const Nvml& driver) {
    std::vector<std::optional<GpuDescription>> found;
    for (const auto& gpu : gpus) found.push_back(driver.describe(gpu));
    return found;
  });
}

std::vector<std::optional<GpuUse>> use_of_gpus(const std::vector<std::string>& gpus, bool is_by_bus,
                                               std::chrono::milliseconds patience) {
  return ask_of_each(gpus, is_by_bus, patience, &Nvml::use);
}

std::vector<std::optional<GpuHealth>> health_of_gpus(const std::vector<std::string>& gpus, bool is_by_bus,
                                                     std::chrono::milliseconds patience) {
  return ask_of_each(gpus, is_by_bus, patience, &Nvml::health);
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
