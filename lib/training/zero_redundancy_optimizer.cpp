#include <ATen/ATen.h>
#include <torch/optim/lbfgs.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <torch/csrc/distributed/c10d/comm.hpp>
#include <utility>

#include "base/ids.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "taas/zero.hpp"
#include "training/backend/c10_error.hpp"
#include "training/checkpoint/optimizer_state.hpp"
#include "training/checkpoint/pickle.hpp"
#include "training/ddp/module_tensors.hpp"
#include "training/group/process_group_state.hpp"
#include "training/group/rank_texts.hpp"

namespace taas {
namespace {

using Dict = c10::impl::GenericDict;
using List = c10::impl::GenericList;
using Groups = ZeroRedundancyOptimizer::Groups;

constexpr std::size_t kBroadcastBytes = std::size_t{25} << 20;
constexpr int kDigitsOfSave = 16;

/// What is wrong on this rank; empty: nothing.
std::string problem_of(const std::vector<NamedTensor>& parameters, c10::Device device) {
  if (parameters.empty()) return "there is no parameter: nothing to optimize";
  std::set<const void*> seen;
  for (const auto& [name, parameter] : parameters) {
    if (!seen.insert(parameter.unsafeGetTensorImpl()).second) return name + " is there twice";
    if (parameter.device() == device) continue;
    return name + " is on " + parameter.device().str() + " but this group works on " + device.str() +
           ": move the module there first, with module->to(group.device())";
  }
  return "";
}

/// The same error on all ranks.
void check_parameters(const Groups& groups, const ProcessGroup& group) {
  std::vector<NamedTensor> named;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const auto& parameter : groups[g].params()) {
      const auto of_group = g == 0 ? "" : " of group " + std::to_string(g);
      named.emplace_back("parameter " + std::to_string(named.size()) + of_group, parameter);
    }
  }
  const auto problem = first_text(group, problem_of(named, group.device()));
  if (!problem.empty()) throw InvalidArgument(problem);
  if (group.native()) check_same_parameters(group, named);
}

/// A group with the options of `from`, where it has some.
torch::optim::OptimizerParamGroup with_options_of(const torch::optim::OptimizerParamGroup& from,
                                                  std::vector<at::Tensor> parameters) {
  if (!from.has_options()) return torch::optim::OptimizerParamGroup(std::move(parameters));
  return {std::move(parameters), from.options().clone()};
}

Dict state_dict_of(const Dict& states, const List& groups) {
  auto all = plain_dict();
  all.insert("state", states);
  all.insert("param_groups", groups);
  return all;
}

/// The groups' options with other numbers in place of the parameters'.
List with_numbers(const List& groups, const std::vector<std::vector<std::size_t>>& numbers) {
  auto all = plain_list();
  for (std::size_t g = 0; g < numbers.size(); ++g) {
    auto parameters = plain_list();
    for (const auto number : numbers[g]) parameters.push_back(static_cast<std::int64_t>(number));
    auto one = groups.get(g).toGenericDict().copy();
    one.insert_or_assign(kParams, parameters);
    all.push_back(one);
  }
  return all;
}

/// 0, 1, 2, … over groups of these sizes.
std::vector<std::vector<std::size_t>> counted(const std::vector<std::size_t>& sizes) {
  std::vector<std::vector<std::size_t>> numbers;
  std::size_t next = 0;
  for (const auto size : sizes) {
    auto& one = numbers.emplace_back(size);
    for (auto& number : one) number = next++;
  }
  return numbers;
}

void send_value(const ProcessGroup& group, const c10::IValue& value, int root) {
  std::string bytes;
  pickle(value, [&bytes](std::string_view part) { bytes += part; });
  send(group, at::scalar_tensor(static_cast<std::int64_t>(bytes.size()), at::kLong), root);
  send(group, at::from_blob(bytes.data(), {static_cast<std::int64_t>(bytes.size())}, at::kByte), root);
}

c10::IValue receive_value(const ProcessGroup& group, int source) {
  auto size = at::zeros({}, at::kLong);
  recv(group, size, source);
  std::string bytes(static_cast<std::size_t>(size.item<std::int64_t>()), '\0');
  auto there = at::from_blob(bytes.data(), {size.item<std::int64_t>()}, at::kByte);
  recv(group, there, source);
  std::istringstream file(std::move(bytes));
  return unpickle(file);
}

using States = std::map<std::int64_t, c10::IValue>;  // by the index among all parameters

/// All of `from`, or those that are wanted.
void add_states(States& states, const Dict& from, const std::set<std::int64_t>* wanted = nullptr) {
  for (const auto& entry : from.at("state").toGenericDict()) {
    const auto index = entry.key().toInt();
    if (!wanted || wanted->count(index) != 0) states.emplace(index, entry.value());
  }
}

Dict dict_of(const States& states) {
  auto dict = plain_dict();
  for (const auto& [index, state] : states) dict.insert(index, state);
  return dict;
}

std::string file_of(const std::string& folder, std::int64_t rank) {
  return (std::filesystem::path(folder) / ("optimizer-" + std::to_string(rank) + ".pt")).string();
}

/// Throws on every rank when `work` has failed on one, with the rank and the path at fault.
template <class Work>
void on_all_ranks(const ProcessGroup& group, const std::string& path, Work&& work) {
  std::string failure;
  try {
    work();
  } catch (const std::exception& error) {
    const auto text = one_line(error);
    failure = "rank " + std::to_string(group.rank()) + ": " + (text.find(path) == text.npos ? path + ": " : "") + text;
  }
  const auto first = first_text(group, failure);
  if (!first.empty()) throw CheckpointError(first);
}

}  // namespace

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(const Groups& groups, const ProcessGroup& group,
                                                 const MakeLocalOptimizer& make)
    : ZeroRedundancyOptimizer(groups, group, prepare(groups, group, make)) {}

ZeroRedundancyOptimizer::ZeroRedundancyOptimizer(const Groups& groups, const ProcessGroup& group, Prepared prepared)
    : Optimizer(groups, prepared.local->defaults().clone()),
      group_(group),
      parts_(std::move(prepared.parts)),
      local_(std::move(prepared.local)) {
  sizes_ = group_sizes(*this);
}

/// Deals as Python's _partition_parameters: over all groups, in each the largest first.
ZeroRedundancyOptimizer::Prepared ZeroRedundancyOptimizer::prepare(const Groups& groups, const ProcessGroup& group,
                                                                   const MakeLocalOptimizer& make) {
  check_parameters(groups, group);
  Parts parts(static_cast<std::size_t>(group.world_size()));
  std::vector<std::int64_t> sizes(parts.size(), 0);
  Groups own_groups;
  std::size_t index = 0;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::vector<Owned> dealt;
    for (const auto& parameter : groups[g].params()) dealt.push_back({parameter, index++});
    std::stable_sort(dealt.begin(), dealt.end(),
                     [](const Owned& a, const Owned& b) { return a.parameter.numel() > b.parameter.numel(); });
    std::vector<at::Tensor> own;
    for (auto& one : dealt) {
      const auto least = std::min_element(sizes.begin(), sizes.end());
      const auto rank = least - sizes.begin();
      *least += one.parameter.numel();
      if (rank == group.rank()) own.push_back(one.parameter);
      parts[static_cast<std::size_t>(rank)].push_back(std::move(one));
    }
    own_groups.push_back(with_options_of(groups[g], std::move(own)));
  }
  auto local = make(std::move(own_groups));
  if (dynamic_cast<torch::optim::LBFGS*>(local.get()) != nullptr) {
    throw InvalidArgument("LBFGS looks at all parameters at once and cannot be spread over the ranks: use it as it is");
  }
  return {std::move(parts), std::move(local)};
}

torch::Tensor ZeroRedundancyOptimizer::step(LossClosure closure) {
  if (group_sizes(*this) != sizes_) {
    throw InvalidArgument("parameters were added: make a ZeroRedundancyOptimizer of all of them instead");
  }
  hand_options_on();
  auto loss = local_->step(std::move(closure));
  if (!group_.native()) return loss;
  const at::NoGradGuard no_grad;
  for (std::size_t rank = 0; rank < parts_.size(); ++rank) {
    std::vector<at::Tensor> values;
    for (const auto& one : parts_[rank]) values.push_back(one.parameter.detach());
    if (values.empty()) continue;
    communicating("broadcast of stepped parameters", [&] {
      c10d::broadcast_coalesced(group_.state().group, values, kBroadcastBytes, static_cast<int>(rank));
    });
  }
  return loss;
}

/// What was set on the groups that the user sees.
void ZeroRedundancyOptimizer::hand_options_on() {
  for (std::size_t g = 0; g < sizes_.size(); ++g) {
    local_->param_groups()[g].set_options(param_groups()[g].options().clone());
  }
}

/// As the whole optimizer's, with the states of this rank's parameters alone.
c10::IValue ZeroRedundancyOptimizer::own_state(StateTensors tensors) {
  hand_options_on();
  const auto local = optimizer_state(*local_, tensors).toGenericDict();
  auto states = plain_dict();
  for (const auto& entry : local.at("state").toGenericDict()) {
    states.insert(static_cast<std::int64_t>(own()[static_cast<std::size_t>(entry.key().toInt())].index), entry.value());
  }
  return state_dict_of(states, with_numbers(local.at("param_groups").toList(), counted(sizes_)));
}

c10::IValue ZeroRedundancyOptimizer::consolidated_state(int root) {
  const auto mine = own_state(StateTensors::kCopied);
  if (group_.rank() != root) {
    send_value(group_, mine, root);
    return {};
  }
  States states;
  for (int rank = 0; rank < group_.world_size(); ++rank) {
    add_states(states, (rank == root ? mine : receive_value(group_, rank)).toGenericDict());
  }
  return state_dict_of(dict_of(states), mine.toGenericDict().at("param_groups").toList());
}

/// What this rank's optimizer is to take of states by global index. Those of other ranks' parameters are checked as
/// well, where they are there: what does not fit is refused by all.
c10::IValue ZeroRedundancyOptimizer::own_part(const Dict& saved, const List& groups) const {
  check_group_sizes(groups, sizes_);
  for (const auto& part : parts_) {
    for (const auto& one : part) {
      const auto index = static_cast<std::int64_t>(one.index);
      if (saved.contains(index)) check_shapes(index, one.parameter, saved.at(index).toGenericDict());
    }
  }
  auto states = plain_dict();
  for (std::size_t i = 0; i < own().size(); ++i) {
    const auto index = static_cast<std::int64_t>(own()[i].index);
    if (saved.contains(index)) states.insert(static_cast<std::int64_t>(i), saved.at(index));
  }
  return state_dict_of(states, with_numbers(groups, counted(group_sizes(*local_))));
}

void ZeroRedundancyOptimizer::take(const c10::IValue& part) {
  load_optimizer_state(*local_, part);
  for (std::size_t g = 0; g < sizes_.size(); ++g) {
    param_groups()[g].set_options(local_->param_groups()[g].options().clone());
  }
}

void ZeroRedundancyOptimizer::load_state(const c10::IValue& state) {
  take(understood([&] {
    const auto all = state.toGenericDict();
    return own_part(all.at("state").toGenericDict(), all.at("param_groups").toList());
  }));
}

void ZeroRedundancyOptimizer::save_files(const std::string& folder, std::int64_t epoch) {
  const auto save = broadcast_text(group_, random_hex(kDigitsOfSave));
  const auto path = file_of(folder, group_.rank());
  on_all_ranks(group_, path, [&] {
    std::error_code failure;
    std::filesystem::create_directories(folder, failure);
    if (failure) throw CheckpointError("the folder cannot be made: " + failure.message());
    save_checkpoint(path, {.epoch = epoch,
                           .optimizer = own_state(StateTensors::kShared),
                           .extra = {{"save", save}, {"world_size", std::int64_t{group_.world_size()}}}});
  });
}

/// Of each file only the states of this rank's parameters are kept.
std::int64_t ZeroRedundancyOptimizer::load_files(const std::string& folder) {
  std::int64_t epoch = 0;
  c10::IValue part;
  on_all_ranks(group_, folder, [&] {
    std::set<std::int64_t> wanted;
    for (const auto& one : own()) wanted.insert(static_cast<std::int64_t>(one.index));
    States states;
    auto groups = plain_list();
    std::string save;
    std::int64_t ranks = 1;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto path = file_of(folder, rank);
      auto file = load_checkpoint(path);
      const auto &of = file.extra["save"], &world = file.extra["world_size"];
      if (!of.isString() || !world.isInt()) throw CheckpointError(path + " is not a rank's part of an optimizer");
      if (rank == 0) {
        epoch = file.epoch;
        save = of.toStringRef();
        ranks = world.toInt();
      }
      if (of.toStringRef() != save) {
        throw CheckpointError(path + " is of another save than " + file_of(folder, 0) +
                              ": give each save a folder of its own");
      }
      understood([&] {
        const auto all = file.optimizer.toGenericDict();
        groups = all.at("param_groups").toList();
        add_states(states, all, &wanted);
      });
    }
    part = understood([&] { return own_part(dict_of(states), groups); });
  });
  on_all_ranks(group_, folder, [&] { take(part); });
  return epoch;
}

void ZeroRedundancyOptimizer::save(torch::serialize::OutputArchive& /*archive*/) const {
  throw Exception("a ZeroRedundancyOptimizer has a part of the state only: use consolidated_state()");
}

void ZeroRedundancyOptimizer::load(torch::serialize::InputArchive& /*archive*/) {
  throw Exception("a ZeroRedundancyOptimizer has a part of the state only: use load_state()");
}

}  // namespace taas
