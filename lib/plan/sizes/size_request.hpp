#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "plan/options/options.hpp"

namespace taas::plan {

inline constexpr int kDefaultGpusPerNode = 8;
inline constexpr int kMostRanks = 65536;

/// Least and most of "N" or "MIN:MAX".
struct NodeRange {
  int least = 1;
  int most = 1;
  [[nodiscard]] bool elastic() const { return least < most; }
};
std::optional<NodeRange> read_node_range(std::string_view text);

/// Whether a text can be a value of --nnodes; the error says why not, without naming the flag.
Result<> check_node_count(std::string_view text);
/// The same for --nproc-per-node, as far as can be said without knowing the machine.
Result<> check_process_count(std::string_view text);

/// What "auto", "gpu" and "cpu" count on a node. Absent numbers are those of a machine that is not known yet.
struct NodeResources {
  std::optional<int> gpus;
  std::optional<int> cores;
  bool gpus_by_node = false;     ///< each node's are known; `gpus` are the most
  std::string gpu_problem = {};  ///< as of a Machine
};

/// Nobody who wants GPUs is to train on the CPU because they have vanished. `way_out` asks for the CPU.
Error gpus_have_vanished(const std::string& problem,
                         const char* way_out = "CUDA_VISIBLE_DEVICES= or --nproc-per-node cpu");

/// Its GPUs are MIG slices that CUDA_VISIBLE_DEVICES names. CUDA shows a process one of them, and those of one GPU are
/// one device for NCCL: as if ranks shared a GPU.
bool has_slices(const Machine& machine);

/// How many ranks so many GPUs of one node are for; at least one, since a node's number may only be a guess.
int ranks_for(int gpus, const SizeOptions& options);

/// Ranks that a node with so many GPUs (0: not known) gets of a total when nobody says how many it has.
int usual_ranks(int gpus, const SizeOptions& options);

/// When a node's own GPUs say how many ranks it gets, all of them belong to a rank. The error names `where` they are.
Result<> check_groups(int gpus, const std::string& where, const SizeOptions& options);

/// Ranks may share a node's GPUs, but the devices of one rank are different ones.
Result<> check_group_fits(int gpus, const SizeOptions& options);

/// The size options as numbers of ranks; absent where the user said nothing.
struct SizeRequest {
  std::optional<int> total;
  std::optional<int> most_per_node;
  std::optional<NodeRange> nodes;
  std::optional<int> per_node;
  bool on_cpu = false;
  int devices_per_rank = 1;

  [[nodiscard]] bool empty() const { return !total && !most_per_node && !nodes && !per_node; }
};

/// "--gpus 8", as the user wrote it, and how many ranks that is where they have several GPUs each.
std::string name_total(const SizeRequest& request);

/// "gpu", "auto" or "cpu" without a total: among nodes that join, each says for itself how many processes that means.
bool counts_by_machine(const SizeOptions& options);

/// Reads the options. Values that contradict each other are errors that name both; a total is measured at the most
/// nodes of a range.
Result<SizeRequest> read_size_request(const SizeOptions& options, const NodeResources& resources);

}  // namespace taas::plan
