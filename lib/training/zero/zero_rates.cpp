#include "training/zero/zero_rates.hpp"

#include <ATen/ATen.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <array>
#include <limits>
#include <tuple>

#include "taas/collectives.hpp"

namespace taas {
namespace {

/// Rate, weight decay, and momentum or the two betas.
using GroupRates = std::array<double, 4>;

template <class AdamKind>
bool read_adam(const torch::optim::OptimizerOptions& options, GroupRates& rates) {
  const auto* adam = dynamic_cast<const AdamKind*>(&options);
  if (adam) rates = {options.get_lr(), adam->weight_decay(), std::get<0>(adam->betas()), std::get<1>(adam->betas())};
  return adam != nullptr;
}

template <class AdamKind>
bool write_adam(torch::optim::OptimizerOptions& options, const GroupRates& rates) {
  auto* adam = dynamic_cast<AdamKind*>(&options);
  if (adam) adam->weight_decay(rates[1]).betas({rates[2], rates[3]});
  return adam != nullptr;
}

GroupRates read_rates(const torch::optim::OptimizerOptions& options) {
  GroupRates rates{};
  if (read_adam<torch::optim::AdamOptions>(options, rates)) return rates;
  if (read_adam<torch::optim::AdamWOptions>(options, rates)) return rates;
  const auto& sgd = dynamic_cast<const torch::optim::SGDOptions&>(options);
  return {options.get_lr(), sgd.weight_decay(), sgd.momentum(), 0};
}

void write_rates(torch::optim::OptimizerOptions& options, const GroupRates& rates) {
  options.set_lr(rates[0]);
  if (write_adam<torch::optim::AdamOptions>(options, rates)) return;
  if (write_adam<torch::optim::AdamWOptions>(options, rates)) return;
  dynamic_cast<torch::optim::SGDOptions&>(options).weight_decay(rates[1]).momentum(rates[2]);
}

}  // namespace

void agree_on_rates(const ProcessGroup& group, std::vector<torch::optim::OptimizerParamGroup>& groups,
                    bool has_inputs) {
  const auto width = static_cast<std::int64_t>(GroupRates().size());
  auto all = at::full({static_cast<std::int64_t>(groups.size()), width}, -std::numeric_limits<double>::infinity(),
                      at::kDouble);
  auto* number = all.data_ptr<double>();
  for (std::size_t g = 0; has_inputs && g < groups.size(); ++g) {
    for (const double rate : read_rates(groups[g].options())) *number++ = rate;
  }
  all = all.to(group.device());
  all_reduce(group, all, ReduceOp::kMax);
  if (has_inputs) return;
  all = all.cpu();
  number = all.data_ptr<double>();
  for (auto& one : groups) {
    GroupRates rates{};
    for (auto& rate : rates) rate = *number++;
    write_rates(one.options(), rates);
  }
}

}  // namespace taas
