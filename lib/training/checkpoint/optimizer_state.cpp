#include "training/checkpoint/optimizer_state.hpp"

#include <c10/util/Type.h>

#include <memory>
#include <string>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "training/checkpoint/optimizer_fields.hpp"
#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

/// What libtorch stores of one kind of optimizer.
template <class KindOptions, class KindState>
struct Kind {
  using Options = KindOptions;
  using State = KindState;
};

/// Calls `use` with the optimizer's kind, by the class itself: one that is derived may remember something else.
template <class Use>
auto with_kind_of(const torch::optim::Optimizer& optimizer, const Use& use) {
  using namespace torch::optim;
  const auto& type = typeid(optimizer);
  if (type == typeid(SGD)) return use(Kind<SGDOptions, SGDParamState>());
  if (type == typeid(Adam)) return use(Kind<AdamOptions, AdamParamState>());
  if (type == typeid(AdamW)) return use(Kind<AdamWOptions, AdamWParamState>());
  if (type == typeid(RMSprop)) return use(Kind<RMSpropOptions, RMSpropParamState>());
  if (type == typeid(Adagrad)) return use(Kind<AdagradOptions, AdagradParamState>());
  if (type == typeid(Adadelta)) return use(Kind<AdadeltaOptions, AdadeltaParamState>());
  throw CheckpointError("the state of an optimizer of class " + c10::demangle(type.name()) +
                        " has no form that Python reads: save it with torch::save(optimizer, path)");
}

/// All parameters of all groups, in the order of their indices in Python's layout.
std::vector<at::Tensor> parameters_of(const torch::optim::Optimizer& optimizer) {
  std::vector<at::Tensor> all;
  for (const auto& group : optimizer.param_groups())
    all.insert(all.end(), group.params().begin(), group.params().end());
  return all;
}

/// All is made first, so that nothing is changed where something does not fit.
template <class Kind>
void load_kind(torch::optim::Optimizer& optimizer, const c10::IValue& state, bool takes) {
  const auto all = state.toGenericDict();
  const auto groups = all.at("param_groups").toList();
  check_group_sizes(groups, group_sizes(optimizer));
  const auto parameters = parameters_of(optimizer);
  std::remove_reference_t<decltype(optimizer.state())> states;
  for (const auto& entry : all.at("state").toGenericDict()) {
    const auto& parameter = parameters.at(static_cast<std::size_t>(entry.key().toInt()));
    const auto fields = entry.value().toGenericDict();
    check_shapes(entry.key().toInt(), parameter, fields);
    auto made = std::make_unique<typename Kind::State>();
    each_field(*made, FieldReader(fields, parameter.device(), takes));
    states[parameter.unsafeGetTensorImpl()] = std::move(made);
  }
  std::vector<std::unique_ptr<torch::optim::OptimizerOptions>> options;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    auto& made = options.emplace_back(optimizer.param_groups()[i].options().clone());
    const auto fields = groups.get(i).toGenericDict();
    each_field(dynamic_cast<typename Kind::Options&>(*made), FieldReader(fields, at::kCPU, false));
  }
  optimizer.state() = std::move(states);
  for (std::size_t i = 0; i < options.size(); ++i) optimizer.param_groups()[i].set_options(std::move(options[i]));
}

void load_state(torch::optim::Optimizer& optimizer, const c10::IValue& state, bool takes) {
  with_kind_of(optimizer, [&](auto kind) { understood([&] { load_kind<decltype(kind)>(optimizer, state, takes); }); });
}

template <class Kind>
c10::IValue state_of_kind(const torch::optim::Optimizer& optimizer, StateTensors tensors) {
  auto states = plain_dict();
  auto groups = plain_list();
  std::int64_t index = 0;
  for (const auto& own : optimizer.param_groups()) {
    auto indices = plain_list();
    for (const auto& parameter : own.params()) {
      const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
      if (found != optimizer.state().end()) {
        auto fields = plain_dict();
        each_field(dynamic_cast<const typename Kind::State&>(*found->second), FieldWriter(fields, tensors));
        states.insert(index, fields);
      }
      indices.push_back(index++);
    }
    auto group = plain_dict();
    each_field(dynamic_cast<const typename Kind::Options&>(own.options()), FieldWriter(group, StateTensors::kShared));
    group.insert(kParams, indices);
    groups.push_back(group);
  }
  auto all = plain_dict();
  all.insert("state", states);
  all.insert("param_groups", groups);
  return all;
}

/// What belongs to each element of the parameter, which may be a scalar itself.
template <class Field>
bool is_moment(const Field& field) {
  return field.value().isTensor() && field.key().toStringRef() != "step";
}

}  // namespace

void check_shapes(std::int64_t index, const at::Tensor& parameter, const StateFields& fields) {
  for (const auto& field : fields) {
    if (is_moment(field) && field.value().toTensor().sizes() != parameter.sizes())
      throw CheckpointError("the optimizer state of parameter " + std::to_string(index) + " has another shape (" +
                            field.key().toStringRef() + ") than the parameter");
  }
}

std::vector<std::size_t> group_sizes(const torch::optim::Optimizer& optimizer) {
  std::vector<std::size_t> sizes;
  for (const auto& group : optimizer.param_groups()) sizes.push_back(group.params().size());
  return sizes;
}

void check_group_sizes(const c10::impl::GenericList& groups, const std::vector<std::size_t>& sizes) {
  if (groups.size() != sizes.size()) {
    throw CheckpointError("the checkpoint has " + std::to_string(groups.size()) +
                          " parameter groups but the optimizer " + std::to_string(sizes.size()));
  }
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto saved = groups.get(i).toGenericDict().at(kParams).toListRef().size();
    if (saved == sizes[i]) continue;
    throw CheckpointError("parameter group " + std::to_string(i) + " has " + std::to_string(saved) +
                          " parameters in the checkpoint but " + std::to_string(sizes[i]) + " in the optimizer");
  }
}

c10::IValue optimizer_state(const torch::optim::Optimizer& optimizer, StateTensors tensors) {
  return with_kind_of(optimizer, [&](auto kind) { return state_of_kind<decltype(kind)>(optimizer, tensors); });
}

void load_optimizer_state(torch::optim::Optimizer& optimizer, const c10::IValue& state) {
  load_state(optimizer, state, /*takes=*/false);
}

void load_optimizer_state(torch::optim::Optimizer& optimizer, c10::IValue&& state) {
  const auto given = std::move(state);
  load_state(optimizer, given, /*takes=*/true);
}

}  // namespace taas
