#include "taas/random_state.hpp"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>

#include <mutex>

#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"

namespace taas {
namespace {

at::Tensor state_on(c10::Device device) {
  auto generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

/// libtorch takes the memory of a view for the whole of one, wherever it begins.
void set_state_on(c10::Device device, const at::Tensor& state) {
  auto generator = at::globalContext().defaultGenerator(device);
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state.to(at::kCPU).clone(at::MemoryFormat::Contiguous));
}

c10::IValue of_all_ranks(const ProcessGroup& group, const at::Tensor& own) {
  const auto here = own.to(group.device());
  auto rows = at::empty({group.world_size(), own.numel()}, here.options());
  all_gather(group, rows, here);
  auto states = plain_list();
  for (const auto& row : rows.cpu().unbind()) states.push_back(row.clone());
  return states;
}

c10::IValue alone(const at::Tensor& own) {
  auto states = plain_list();
  states.push_back(own);
  return states;
}

template <class Gather>
c10::IValue gathered(c10::Device device, const Gather& gather) {
  auto state = plain_dict();
  state.insert("cpu", gather(state_on(c10::kCPU)));
  if (device.is_cuda()) state.insert("cuda", gather(state_on(device)));
  return state;
}

bool take(c10::Device device, std::size_t rank, std::size_t ranks, const c10::IValue& state) try {
  const auto all = state.toGenericDict();
  const auto states_of = [&](const char* kind) { return all.at(kind).toListRef(); };
  const bool fits = states_of("cpu").size() == ranks &&
                    (!device.is_cuda() || (all.contains("cuda") && states_of("cuda").size() == ranks));
  if (!fits) return false;
  set_state_on(c10::kCPU, states_of("cpu")[rank].toTensor());
  if (device.is_cuda()) set_state_on(device, states_of("cuda")[rank].toTensor());
  return true;
} catch (const std::exception&) {
  throw CheckpointError("this is not a state of random numbers: give what random_state() has given");
}

}  // namespace

c10::IValue random_state(const ProcessGroup& group) {
  return gathered(group.device(), [&](const at::Tensor& own) { return of_all_ranks(group, own); });
}

c10::IValue random_state() { return gathered(c10::kCPU, alone); }

bool load_random_state(const ProcessGroup& group, const c10::IValue& state) {
  return take(group.device(), static_cast<std::size_t>(group.rank()), static_cast<std::size_t>(group.world_size()),
              state);
}

bool load_random_state(const c10::IValue& state) { return take(c10::kCPU, 0, 1, state); }

}  // namespace taas
