#include "node/ranks/rank_starts.hpp"

#include <boost/algorithm/string/replace.hpp>
#include <filesystem>
#include <utility>

#include "base/environment/environment.hpp"
#include "node/process/common_environment.hpp"
#include "proc/machine/gpu_driver.hpp"

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
                           const std::vector<RankPlace>& places, const plan::OutputOptions& output) {
  GenerationPaths made;
  auto& trouble = made.trouble;
  made.flight_records = path_or_none(folder.flight_records(generation), trouble);
  for (const auto& place : places) {
    made.ranks.push_back({path_or_none(folder.rank_log(generation, place, storage::LogStream::kStdout), trouble),
                          path_or_none(folder.rank_log(generation, place, storage::LogStream::kStderr), trouble),
                          path_or_none(folder.error_file(generation, place), trouble),
                          make_private_output(folder, place.rank, output.ranks, trouble)});
  }
  using storage::LogStream;
  const auto filtered = [&](const std::vector<std::string>& words, LogStream stream) {
    return words.empty() ? HeldPath() : path_or_none(folder.filtered_log(generation, places.front(), stream), trouble);
  };
  made.filtered_out = filtered(output.stdout_filters, LogStream::kStdout);
  made.filtered_err = filtered(output.stderr_filters, LogStream::kStderr);
  return made;
}

void RankStarts::begin(Generation generation, plan::RunAddresses addresses, std::vector<RankPlace> places) {
  generation_ = generation;
  addresses_ = std::move(addresses);
  places_ = std::move(places);
  paths_.assign(places_.size(), {});
  auto chosen = plan::decide_streams(options_.settings.options.output, places_);
  outputs_ = chosen ? std::move(*chosen) : std::vector<plan::RankOutput>(places_.size());
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
  start.open_files_limit = options_.open_files_limit;
  start.stdout_file = files.out;
  start.log_limit = options_.settings.options.output.log_limit;
  start.stderr_file = files.err;
  start.error_file = files.error;
  if (!flight_records_.empty()) start.flight_record = flight_records_.with(std::to_string(place.rank.value));
  const auto reader = plan::rank_with_input(options_.settings.options.output, places_);
  start.inherits_stdin = options_.inherits_stdin && place.rank == reader;
  if (has_terminal(index)) start.terminal = options_.terminal;
  return start;
}

bool RankStarts::has_terminal(std::size_t index) const {
  return options_.terminal && places_[index].rank == plan::rank_with_input(options_.settings.options.output, places_);
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

std::string RankStarts::step_file(std::size_t index) const {
  return options_.steps == nullptr ? "" : options_.steps->path(generation_, places_[index].rank);
}

std::string RankStarts::gpu(std::size_t index) const {
  const auto& machine = options_.machine;
  if (options_.settings.device != plan::Device::kGpu || machine.gpus == 0) return {};
  const int first = places_[index].local_rank * options_.settings.options.size.devices_per_rank;
  const auto visible = find_variable(machine.environment, "CUDA_VISIBLE_DEVICES");
  return name_of_visible_gpu(first % machine.gpus, visible).value_or("");
}

std::vector<plan::Variable> RankStarts::own_variables(std::size_t index) const {
  const auto& files = paths_[index];
  plan::RunAddresses known = addresses_;
  known.error_file = files.error.path();
  known.step_file = step_file(index);
  const bool debugs = options_.settings.options.output.post_mortem && !flight_records_.empty();
  if (debugs) known.post_mortem = std::filesystem::path(flight_records_.path()).parent_path() / "post-mortem";
  known.on_console = is_shown(index) && !has_terminal(index);
  if (!files.output.empty()) known.output_directory = files.output;
  return plan::rank_environment(options_.settings, options_.machine, places_[index], generation_, known);
}

}  // namespace taas::node
