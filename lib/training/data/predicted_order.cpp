#include "training/data/predicted_order.hpp"

#include <utility>

#include "training/making/random_state.hpp"

namespace taas {
namespace {

/// Inside, the default generator has the given state; that becomes what draws have made of it.
class DrawsFrom {
 public:
  explicit DrawsFrom(at::Tensor& state) : state_(state), before_(default_generator_state()) {
    set_default_generator_state(state);
  }
  ~DrawsFrom() {
    state_ = default_generator_state();
    set_default_generator_state(before_);
  }
  DrawsFrom(const DrawsFrom&) = delete;
  DrawsFrom& operator=(const DrawsFrom&) = delete;

 private:
  at::Tensor& state_;
  at::Tensor before_;
};

}  // namespace

/// As DataLoader::batches does it.
PredictedOrder::PredictedOrder(const DataLoader::State& loader, std::shared_ptr<Sampler> sampler, std::size_t rank)
    : sampler_(std::move(sampler)),
      generator_(default_generator_state()),
      order_(*sampler_, loader.options.batch_size, loader.options.drop_last,
             loader.seeds(rank, (loader.saved ? *loader.saved : loader.epoch).number)) {
  if (loader.saved && loader.saved->order.defined()) generator_ = loader.saved->order;
  const DrawsFrom own(generator_);
  sampler_->reset(std::nullopt);
  if (loader.saved) order_.skip(loader.saved->taken);
}

std::optional<OrderedTask> PredictedOrder::next() {
  const DrawsFrom own(generator_);
  return order_.next();
}

}  // namespace taas
