#include "parse/refused.hpp"

#include <algorithm>
#include <string>

namespace taas::cli {
namespace {

constexpr std::string_view kWhichHosts =
    "is deepspeed's: --hosts a:4,b:2 says which hosts and how many ranks on each, CUDA_VISIBLE_DEVICES which GPUs";
constexpr std::string_view kCount =
    "is mpirun's or srun's: --gpus N is the number of ranks in all, --nproc-per-node N that on each node";
constexpr std::string_view kBindCores = "is deepspeed's: --numa-binding exclusive gives each rank cores of its own";

struct Refusal {
  std::string_view name;
  std::string_view why;
};

constexpr Refusal kRefusals[] = {
    {"join", "is not needed: --rdzv-endpoint HOST:PORT with --nnodes N on every node lets them meet"},
    {"n", kCount},
    {"np", kCount},
    {"ntasks", kCount},
    {"max-retries", "is called --max-restarts here"},
    {"include", kWhichHosts},
    {"exclude", kWhichHosts},
    {"bind-cores-to-rank", kBindCores},
    {"bind-core-list", kBindCores},
    {"num-gpus", "is deepspeed's: --nproc-per-node N is the number of ranks on each node, --gpus N on all"},
    {"num-nodes", "is deepspeed's: use --nnodes N"},
    {"num-processes", "is accelerate's: use --gpus N"},
    {"num-machines", "is accelerate's: use --nnodes N"},
    {"duplicate-stdout-filters", "comes with a later version of taas-run: grep the files in the run's folder"},
    {"duplicate-stderr-filters", "comes with a later version of taas-run: grep the files in the run's folder"},
    {"logs-specs", "names a Python plug-in of torchrun, which has no meaning here: use --log-dir, -r and -t"},
    {"use-env", "is not needed: ranks always read LOCAL_RANK from the environment"},
};

constexpr std::string_view kVariables[] = {"duplicate-stdout-filters", "duplicate-stderr-filters"};

}  // namespace

std::optional<std::string_view> why_refused(std::string_view name) {
  std::string dashed(name);
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  for (const auto& refusal : kRefusals) {
    if (refusal.name == dashed) return refusal.why;
  }
  return std::nullopt;
}

std::span<const std::string_view> refused_variables() { return kVariables; }

}  // namespace taas::cli
