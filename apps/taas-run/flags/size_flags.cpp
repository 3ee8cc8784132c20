#include <limits>

#include "flags/setters.hpp"
#include "plan/sizes/size_request.hpp"

namespace taas::cli {
namespace {

using Origin = Flag::Origin;
constexpr int kAny = std::numeric_limits<int>::max();

constexpr Flag kSizeFlags[] = {
    {"gpus", 0, "N", "Processes in all, one a GPU (CPU ranks without GPUs); spread evenly over ceil(N / 8) nodes",
     [](auto& options, const auto& values) { return store(options.size.gpus, read_integer(values.back(), 1, kAny)); },
     Origin::kOwn},
    {"gpus-per-node", 0, "N", "Most GPUs that a node has (default: 8, or all of a larger machine)",
     [](auto& options, const auto& values) {
       return store(options.size.gpus_per_node, read_integer(values.back(), 1, kAny));
     },
     Origin::kOwn},
    {"nnodes", 0, "N", "Nodes, or MIN:MAX of machines; without others they are simulated here (default: as needed)",
     [](auto& options, const auto& values) {
       return store_checked(options.size.nnodes, values.back(), plan::check_node_count);
     }},
    {"nproc-per-node", 0, "N|auto|gpu|cpu", "Processes on each node (default: one a GPU, or 1)",
     [](auto& options, const auto& values) {
       return store_checked(options.size.nproc_per_node, values.back(), plan::check_process_count);
     }},
    {"devices-per-rank", 0, "N", "GPUs of each process, which sees no others: --gpus 8 makes 8 / N ranks (default: 1)",
     [](auto& options, const auto& values) {
       return store(options.size.devices_per_rank, read_integer(values.back(), 1, plan::kMostRanks));
     },
     Origin::kOwn},
    {"oversubscribe", 0, "", "Allow more ranks than there are GPUs, and many more CPU ranks than cores",
     [](auto& options, const auto& values) { return store(options.size.oversubscribe, read_switch(values.back())); },
     Origin::kOwn},
};

}  // namespace

FlagGroup size_flags() { return {"Size (with none of these: one process for each GPU, or one)", kSizeFlags}; }

}  // namespace taas::cli
