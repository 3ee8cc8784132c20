#include "training/serving/loader_preparation.hpp"

#include <exception>
#include <utility>

#include "training/making/random_state.hpp"

namespace taas {

namespace {

/// A few batches may go to another worker than the one that has made them, when links come up one after the other.
constexpr std::uint64_t kSurelyOthers = 8;

}  // namespace

LoaderPreparation::LoaderPreparation(std::string name, std::shared_ptr<BatchMaker> maker,
                                     std::deque<std::unique_ptr<BatchOrder>> orders, WorkerPlace place,
                                     std::size_t most_bytes)
    : name_(std::move(name)),
      maker_(std::move(maker)),
      orders_(std::move(orders)),
      place_(place),
      batches_(most_bytes) {}

void LoaderPreparation::step() {
  auto task = next_own();
  if (!task) return;
  try {
    auto fresh = maker_->make(task->bytes);
    if (fresh.head && fresh.head->is_end()) return orders_.back()->ended(*task);
    batches_.put(task->bytes, made_batch(std::move(fresh)));
  } catch (const std::bad_alloc&) {
    orders_.clear();
  } catch (const std::exception&) {
    return;
  }
}

std::optional<OrderedTask> LoaderPreparation::next_own() {
  while (!orders_.empty()) {
    auto order = std::move(orders_.front());
    orders_.pop_front();
    auto task = order->next();
    if (!task) continue;
    orders_.push_back(std::move(order));
    if (is_own(*task)) return task;
  }
  return std::nullopt;
}

std::optional<MadeBatch> LoaderPreparation::take(const std::string& task) {
  ++asked_;
  auto found = batches_.take(task);
  if (found) ++given_;
  return found;
}

std::optional<std::string> LoaderPreparation::take_remark() {
  bool others = given_ == 0 && asked_ >= kSurelyOthers && batches_.count() > 0 && place_.worker == 0;
  if (!others || std::exchange(told_, true)) return std::nullopt;
  return name_ +
         ": ranks ask for other batches than those that were prepared before they started, which are made now: give "
         "serve_data the sampler of the first loop, and call torch::manual_seed before it";
}

}  // namespace taas
