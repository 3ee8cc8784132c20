#include "parse/refused.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace taas::cli {
namespace {

constexpr std::string_view kWhichHosts =
    "--hosts a:4,b:2 says which hosts and how many ranks on each, CUDA_VISIBLE_DEVICES which GPUs";
constexpr std::string_view kBindCores = "--numa-binding exclusive gives each rank cores of its own, near its GPU";
constexpr std::string_view kRanksInAll = "--gpus N is the number of ranks in all, --nproc-per-node N that of each node";
constexpr std::string_view kRanksOfNode = "use --nproc-per-node N";

struct Refusal {
  std::string_view option;
  std::string_view why;
  std::string_view fix;
};

constexpr Refusal kRefusals[] = {
    {"--join", "is not needed", "--rdzv-endpoint HOST:PORT with --nnodes N on every node lets them meet"},
    {"--include", "is deepspeed's", kWhichHosts},
    {"--exclude", "is deepspeed's", kWhichHosts},
    {"--bind-cores-to-rank", "is deepspeed's", kBindCores},
    {"--bind-core-list", "is deepspeed's", kBindCores},
    {"--num-gpus", "is deepspeed's", "--nproc-per-node N is the number of ranks on each node, --gpus N on all"},
    {"--num-nodes", "is deepspeed's", "use --nnodes N"},
    {"--num-processes", "is accelerate's", "use --gpus N"},
    {"--num-machines", "is accelerate's", "use --nnodes N"},
    {"--logs-specs", "names a Python plug-in of torchrun, which has no meaning here", "use --log-dir, -r and -t"},
    {"--use-env", "is not needed", "ranks always read LOCAL_RANK from the environment"},
    {"-n", "is mpirun's", kRanksInAll},
    {"-np", "is mpirun's", kRanksInAll},
    {"--ntasks", "is srun's", kRanksInAll},
    {"--nprocs", "is no option here", kRanksInAll},
    {"-ppn", "is mpirun's", kRanksOfNode},
    {"--ppn", "is mpirun's", kRanksOfNode},
    {"-npernode", "is mpirun's", kRanksOfNode},
    {"--npernode", "is mpirun's", kRanksOfNode},
    {"--ntasks-per-node", "is srun's", kRanksOfNode},
    {"-N", "is srun's", "use --nnodes N"},
    {"-G", "is srun's", "use --gpus N"},
    {"-H", "is mpirun's", "use --hosts a:8,b:8"},
    {"-host", "is mpirun's", "use --hosts a:8,b:8"},
    {"-x", "is mpirun's", "ranks have all of your variables, and --env NAME=VALUE adds one"},
};

}  // namespace

std::optional<Error> refusal(std::string_view option, std::string_view given) {
  std::string dashed(option);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  const bool is_short = !dashed.starts_with("--");
  if (is_short) dashed.erase(dashed.find_last_not_of("0123456789=") + 1);
  for (const auto& refused : kRefusals) {
    if (refused.option != dashed) continue;
    return Error{ErrorCode::kUsage, 0, fmt::format("{} {}: {}", given, refused.why, refused.fix),
                 std::string(refused.fix)};
  }
  return std::nullopt;
}

}  // namespace taas::cli
