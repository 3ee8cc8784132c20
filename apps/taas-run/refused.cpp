#include "refused.hpp"

#include <algorithm>
#include <string>

namespace taas::cli {
namespace {

constexpr std::string_view kLater = "comes with a later version of taas-run";

struct Refusal {
  std::string_view name;
  std::string_view why;
};

constexpr Refusal kRefusals[] = {
    {"join", "is not needed: --rdzv-endpoint HOST:PORT with --nnodes N on every node lets them meet"},
    {"numa-binding", kLater},
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
