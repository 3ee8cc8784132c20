#include "node/ranks/rank_starts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/algorithm/string/replace.hpp>
#include <utility>

#include "base/environment/environment.hpp"
#include "node/process/common_environment.hpp"

namespace taas::node {
namespace {

/// A log folder that cannot be made leaves the rank without a file, not the run without the rank.
HeldPath path_or_none(Result<HeldPath> path, std::string& trouble) {
  if (!path && trouble.empty()) trouble = path.error().message;
  return path ? std::move(*path) : HeldPath();
}

/// torchrun's one macro in the program's arguments.
std::vector<std::string> fill_in_local_rank(std::vector<std::string> command, int local_rank) {
  for (auto& word : command) boost::algorithm::replace_all(word, "${local_rank}", std::to_string(local_rank));
  return command;
}

/// Empty: the rank writes where all do. A folder that cannot be made fails the rank's own writes, and no other's.
std::string make_private_output(const storage::RunDirectory& folder, Rank rank, plan::RankFiles rank_files,
                                std::string& trouble) {
  if (rank.value == 0 || rank_files != plan::RankFiles::kPrivate) return {};
  auto made = folder.make_private_output(rank);
  if (!made && trouble.empty()) trouble = made.error().message;
  return folder.private_output(rank);
}

}  // namespace

GenerationPaths make_paths(const storage::RunDirectory& folder, Generation generation,
                           const std::vector<RankPlace>& places, plan::RankFiles rank_files) {
  GenerationPaths made;
  auto& trouble = made.trouble;
  made.flight_records = path_or_none(folder.flight_records(generation), trouble);
  for (const auto& place : places) {
    made.ranks.push_back({path_or_none(folder.rank_log(generation, place, storage::LogStream::kStdout), trouble),
                          path_or_none(folder.rank_log(generation, place, storage::LogStream::kStderr), trouble),
                          path_or_none(folder.error_file(generation, place), trouble),
                          make_private_output(folder, place.rank, rank_files, trouble)});
  }
  return made;
}

Result<std::vector<Processors>> bind_ranks(const plan::LaunchSettings& settings, const plan::Machine& machine,
                                           const std::vector<RankPlace>& places) {
  NumaRequest request;
  request.binding = settings.options.program.numa_binding;
  if (request.binding == NumaBinding::kNone) return std::vector<Processors>();
  const bool wants_cpu = settings.options.size.nproc_per_node == "cpu";
  if (const auto& others = machine.other_accelerators; !others.empty() && !wants_cpu) {
    return usage_error("--numa-binding", fmt::format("the NUMA nodes of {} are not known to taas-run; --nproc-per-node "
                                                     "cpu binds ranks on the CPU",
                                                     others));
  }
  for (const auto& place : places) {
    const auto in_rank = [&](const char* name) { return plan::variable_of_rank(settings, machine, place, name); };
    const bool on_gpu = settings.device == plan::Device::kGpu && machine.gpus > 0;
    const int first = plan::sees_own_devices(settings, machine, place) ? 0 : place.local_rank;
    request.gpus.push_back(on_gpu ? name_of_visible_gpu(first, in_rank("CUDA_VISIBLE_DEVICES")) : std::nullopt);
    request.order = read_gpu_order(in_rank("CUDA_DEVICE_ORDER"));
  }
  request.has_slices = machine.sliced_gpus > 0;
  request.usable = usable_processors();
  if (request.usable.empty())
    return usage_error("--numa-binding", "the kernel does not say which processors there are");
  auto bound = bind_to_numa(request);
  if (!bound) return std::move(bound.error()).with("--numa-binding");
  return bound;
}

/// All have as many threads as the one with the fewest processors: what differs between ranks costs the preloading.
Result<> RankStarts::begin(Generation generation, plan::RunAddresses addresses, std::vector<RankPlace> places) {
  generation_ = generation;
  addresses_ = std::move(addresses);
  places_ = std::move(places);
  paths_.assign(places_.size(), {});
  auto bound = bind_ranks(options_.settings, options_.machine, places_);
  if (!bound) return bound.error();
  processors_ = std::move(*bound);
  auto fewest = std::ranges::min_element(processors_, {}, &Processors::size);
  if (fewest != processors_.end()) addresses_.processors = static_cast<int>(fewest->size());
  return {};
}

void RankStarts::use(GenerationPaths paths) {
  flight_records_ = std::move(paths.flight_records);
  addresses_.flight_records = flight_records_.path();
  paths_ = std::move(paths.ranks);
}

RankStart RankStarts::describe(std::size_t index) const {
  const auto& place = places_[index];
  const auto& files = paths_[index];
  const bool first = place.rank.value == 0;
  RankStart start;
  start.rank = place.rank;
  start.argv = fill_in_local_rank(options_.command, place.local_rank);
  start.environment = assignments(options_.machine.environment, own_variables(index));
  start.read_only = first ? nullptr : options_.read_only;
  if (!processors_.empty()) start.processors = processors_[index];
  start.open_files_limit = options_.open_files_limit;
  start.stdout_file = files.out;
  start.stderr_file = files.err;
  start.error_file = files.error;
  if (!flight_records_.empty()) start.flight_record = flight_records_.with(std::to_string(place.rank.value));
  start.inherits_stdin = first && options_.inherits_stdin;
  return start;
}

CommonEnvironment RankStarts::common() const {
  std::vector<std::vector<std::string>> environments;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    auto own = own_variables(i);
    environments.push_back(assignments(options_.machine.environment, own));
    for (auto& [name, value] : own) names.push_back(std::move(name));
  }
  return common_environment(environments, names);
}

std::vector<plan::Variable> RankStarts::own_variables(std::size_t index) const {
  const auto& files = paths_[index];
  plan::RunAddresses known = addresses_;
  known.error_file = files.error.path();
  if (!files.output.empty()) known.output_directory = files.output;
  return plan::rank_environment(options_.settings, options_.machine, places_[index], generation_, known);
}

}  // namespace taas::node
