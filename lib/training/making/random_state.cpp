#include "training/making/random_state.hpp"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Parallel.h>

#include <mutex>

namespace taas {
namespace {

template <class Use>
auto with_default_generator(Use&& use) {
  auto generator = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(generator.mutex());
  return use(generator);
}

}  // namespace

UntouchedState::UntouchedState() : generator_(default_generator_state()), threads_(at::get_num_threads()) {
  if (threads_ != 1) at::set_num_threads(1);
}

UntouchedState::~UntouchedState() {
  if (threads_ != 1) at::set_num_threads(threads_);
  set_default_generator_state(generator_);
}

at::Tensor default_generator_state() {
  return with_default_generator([](at::Generator& generator) { return generator.get_state(); });
}

void set_default_generator_state(const at::Tensor& state) {
  with_default_generator([&state](at::Generator& generator) { generator.set_state(state); });
}

std::uint64_t default_seed() {
  return with_default_generator([](at::Generator& generator) { return generator.current_seed(); });
}

void seed_default_generator(std::uint64_t seed) {
  with_default_generator([seed](at::Generator& generator) { generator.set_current_seed(seed); });
}

}  // namespace taas
