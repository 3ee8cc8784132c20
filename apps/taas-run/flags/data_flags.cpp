#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "flags/setters.hpp"
#include "plan/options/loader_names.hpp"

namespace taas::cli {
namespace {

using Origin = Flag::Origin;
constexpr int kMostMachines = 65536;
constexpr std::int64_t kLeastBuffer = 1 << 20;

Result<> store_buffer(plan::Options& options, const std::string& text) {
  auto bytes = read_bytes(text);
  if (!bytes) return bytes.error();
  if (*bytes < kLeastBuffer) return usage_error("less than 1M: no batch would fit");
  options.data.buffer_bytes = *bytes;
  return {};
}

Result<> store_compression(plan::Options& options, const std::string& text) {
  using plan::Compression;
  return store_choice(options.data.compression, text,
                      {{"none", Compression::kNone}, {"lz4", Compression::kLz4}, {"zstd", Compression::kZstd}});
}

Result<> store_on_error(plan::Options& options, const std::string& text) {
  if (text != "raise" && text != "skip") return usage_error("neither raise nor skip");
  options.data.on_error = text == "raise" ? plan::OnDataError::kRaise : plan::OnDataError::kSkip;
  return {};
}

Result<> store_cpus(plan::Options& options, const Values& values) {
  return store(options.data.cpus, read_integer(values.back(), 0, kMostMachines));
}

/// With commas between them; one that is named twice counts once.
Result<> store_loaders(plan::Options& options, const Values& values) {
  std::vector<std::string> names;
  for (const auto& value : values) {
    if (auto named = plan::check_loader_name(value); !named) return named;
    if (std::find(names.begin(), names.end(), value) == names.end()) names.push_back(value);
  }
  options.data.loader = fmt::format("{}", fmt::join(names, ","));
  return {};
}

constexpr Flag kDataFlags[] = {
    {"cpus", 0, "N", "CPU machines that make the batches of registered loaders; 0: none, and loaders are plain",
     [](auto& options, const auto& values) { return store_cpus(options, values); }, Origin::kOwn},
    {"data-workers", 0, "N", "The same as --cpus",
     [](auto& options, const auto& values) { return store_cpus(options, values); }, Origin::kOwn},
    {"units", 0, "U", "Samples to take from each registered loader, over all ranks (default: all)",
     [](auto& options, const auto& values) { return store(options.data.units, read_count(values.back())); },
     Origin::kOwn},
    {"loader", 0, "NAME",
     "Loader whose first batches are prepared before the ranks start, as MODULE:NAME; may be repeated",
     [](auto& options, const auto& values) { return store_loaders(options, values); }, Origin::kOwn,
     Flag::Kind::kRepeatable},
    {"split", 0, "",
     "Deal the batches of each registered loader over the ranks, as taas.register(loader, shared=True) does",
     [](auto& options, const auto& values) { return store(options.data.split, read_switch(values.back())); },
     Origin::kOwn},
    {"data-hosts", 0, "LIST", "CPU machines for ssh, with the worker processes of each if you like: a,b:16",
     [](auto& options, const auto& values) { return store_checked(options.data.hosts, values.back(), check_hosts); },
     Origin::kOwn, Flag::Kind::kCommaList},
    {"data-cores", 0, "C", "Worker processes on each CPU machine (default: its usable cores)",
     [](auto& options, const auto& values) {
       return store(options.data.cores, read_integer(values.back(), 1, kMostMachines));
     },
     Origin::kOwn},
    {"data-buffer", 0, "SIZE", "Memory of each rank for batches under way, in bytes or as 512M or 8G (default: 1G)",
     [](auto& options, const auto& values) { return store_buffer(options, values.back()); }, Origin::kOwn},
    {"data-compress", 0, "none|lz4|zstd", "Compression of batches between machines (default: none)",
     [](auto& options, const auto& values) { return store_compression(options, values.back()); }, Origin::kOwn},
    {"data-plain", 0, "",
     "No encryption of batches, on a network that is trusted; both ends still prove the run's secret",
     [](auto& options, const auto& values) { return store(options.data.plain, read_switch(values.back())); },
     Origin::kOwn},
    {"data-on-error", 0, "raise|skip", "When the dataset raises: raise in the loop, or skip the batch (default: raise)",
     [](auto& options, const auto& values) { return store_on_error(options, values.back()); }, Origin::kOwn},
};

}  // namespace

FlagGroup data_flags() { return {"Data delivery", kDataFlags}; }

}  // namespace taas::cli
