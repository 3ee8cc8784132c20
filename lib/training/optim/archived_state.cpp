#include "training/optim/archived_state.hpp"

#include <torch/serialize/archive.h>

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string_view>
#include <tuple>

#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

using Dict = StateFields;
using List = c10::impl::GenericList;
using torch::serialize::InputArchive;
using torch::serialize::OutputArchive;

/// An archive that was written can be read only after a trip through its serialised form. Without a device, tensors
/// would be copied back to the GPU that they came from.
InputArchive reopen(OutputArchive& written, std::optional<c10::Device> device) {
  std::stringstream stream;
  written.save_to(stream);
  InputArchive archive;
  archive.load_from(stream, device);
  return archive;
}

InputArchive child(InputArchive& archive, const std::string& key) {
  InputArchive inner;
  archive.read(key, inner);
  return inner;
}

Dict fields_of(InputArchive archive) {
  auto fields = plain_dict();
  for (const auto& key : archive.keys()) {
    c10::IValue value;
    archive.read(key, value);
    fields.insert(key, value.isTensor() ? c10::IValue(value.toTensor().detach().cpu()) : value);
  }
  return fields;
}

/// Options that libtorch reads as floating point numbers. Python's user may have given 0 or 1, or a tensor.
bool is_number(const std::string& name) {
  constexpr std::string_view kNumbers[] = {
      "lr", "eps", "weight_decay", "momentum", "dampening", "alpha", "lr_decay", "rho", "initial_accumulator_value"};
  return std::find(std::begin(kNumbers), std::end(kNumbers), name) != std::end(kNumbers);
}

/// Python counts steps in a tensor, or for some optimizers in a floating point number, libtorch in an integer.
c10::IValue as_libtorch_wants(const std::string& name, const c10::IValue& value) {
  if (name == "step") return value.isNone() ? value : c10::IValue(static_cast<std::int64_t>(number_from(value)));
  if (is_number(name)) return number_from(value);
  if (name != "betas") return value;
  const auto betas = value.isList() ? value.toListRef().vec() : value.toTupleRef().elements().vec();
  return std::tuple<double, double>(number_from(betas.at(0)), number_from(betas.at(1)));
}

/// Python says None for what is not there, libtorch nothing.
void write_fields(OutputArchive& archive, const std::string& key, const Dict& fields) {
  OutputArchive inner(archive.compilation_unit());
  for (const auto& field : fields) {
    auto name = field.key().toStringRef();
    if (name != "params" && !field.value().isNone()) inner.write(name, as_libtorch_wants(name, field.value()));
  }
  archive.write(key, inner);
}

void write_size(OutputArchive& archive, const std::string& key, std::size_t size) {
  archive.write(key, torch::tensor(static_cast<std::int64_t>(size)));
}

std::string address_of(const at::Tensor& tensor) {
  return std::to_string(reinterpret_cast<std::size_t>(tensor.unsafeGetTensorImpl()));
}

/// The group with its parameters as their addresses: the names under which libtorch looks for their states.
void write_group(OutputArchive& archive, const std::string& key, const Dict& options,
                 const std::vector<at::Tensor>& parameters) {
  OutputArchive group(archive.compilation_unit());
  write_size(group, "params/size", parameters.size());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    group.write("params/" + std::to_string(i), c10::IValue(address_of(parameters[i])));
  write_fields(group, "options", options);
  archive.write(key, group);
}

/// On the parameter's device, as the optimizer will want them; counters stay where they are.
Dict moved_to(const at::Tensor& parameter, const Dict& fields) {
  auto moved = plain_dict();
  for (const auto& field : fields) {
    bool beside = field.value().isTensor() && field.key().toStringRef() != "step";
    moved.insert(field.key(),
                 beside ? c10::IValue(field.value().toTensor().to(parameter.device(), false, true)) : field.value());
  }
  return moved;
}

/// The device of all parameters; none: there are several.
std::optional<c10::Device> common_device(const std::vector<at::Tensor>& parameters) {
  for (const auto& parameter : parameters) {
    if (parameter.device() != parameters.front().device()) return std::nullopt;
  }
  return parameters.empty() ? std::nullopt : std::optional(parameters.front().device());
}

/// For reopen() with common_device(): what all have in common need not be moved before.
OutputArchive to_archive(const torch::optim::Optimizer& optimizer, const Dict& states, const List& groups) {
  auto parameters = parameters_of(optimizer);
  const bool moves = !common_device(parameters);
  OutputArchive archive;
  archive.write("pytorch_version", c10::IValue("1.5.0"));  // libtorch's name for this layout
  OutputArchive state_archive(archive.compilation_unit());
  for (const auto& entry : states) {
    auto index = entry.key().toInt();
    const auto& parameter = parameters.at(static_cast<std::size_t>(index));
    auto fields = entry.value().toGenericDict();
    write_fields(state_archive, address_of(parameter), moves ? moved_to(parameter, fields) : fields);
  }
  archive.write("state", state_archive);
  OutputArchive groups_archive(archive.compilation_unit());
  write_size(groups_archive, "param_groups/size", groups.size());
  for (std::size_t i = 0; i < groups.size(); ++i)
    write_group(groups_archive, "param_groups/" + std::to_string(i), groups.get(i).toGenericDict(),
                optimizer.param_groups()[i].params());
  archive.write("param_groups", groups_archive);
  return archive;
}

}  // namespace

c10::IValue state_by_archive(const torch::optim::Optimizer& optimizer) {
  OutputArchive written;
  optimizer.save(written);
  auto archive = reopen(written, at::Device(at::kCPU));
  auto state_archive = child(archive, "state");
  auto groups_archive = child(archive, "param_groups");
  auto states = plain_dict();
  auto groups = plain_list();
  std::int64_t index = 0;
  for (std::size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    auto group_archive = child(groups_archive, "param_groups/" + std::to_string(i));
    auto group = fields_of(child(group_archive, "options"));
    auto indices = plain_list();
    for (const auto& parameter : optimizer.param_groups()[i].params()) {
      InputArchive fields;
      if (state_archive.try_read(address_of(parameter), fields)) states.insert(index, fields_of(std::move(fields)));
      indices.push_back(index++);
    }
    group.insert("params", indices);
    groups.push_back(group);
  }
  auto all = plain_dict();
  all.insert("state", states);
  all.insert("param_groups", groups);
  return all;
}

void load_by_archive(torch::optim::Optimizer& optimizer, const StateFields& states,
                     const c10::impl::GenericList& groups) {
  auto written = to_archive(optimizer, states, groups);
  auto archive = reopen(written, common_device(parameters_of(optimizer)));
  optimizer.load(archive);
}

}  // namespace taas
