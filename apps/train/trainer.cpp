#include "trainer.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/utils.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <optional>
#include <system_error>

#include "generator.hpp"
#include "input_error.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "taas/stop.hpp"

namespace taas::train {
namespace {

constexpr std::int64_t kStepsBetweenQuestions = 8;
constexpr std::int64_t kManySamples = std::int64_t{1} << 40;  // more than an epoch has
constexpr std::uint64_t kTrainSeed = 1, kTestSeed = 2;  // of the generated digits: whatever --seed is, the same data

/// FNV-1a over the bytes of all parameters and buffers.
std::int64_t digest(const TensorModule& network) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const auto& [name, tensor] : module_state(network)) {
    const auto* bytes = static_cast<const unsigned char*>(tensor.const_data_ptr());
    for (std::size_t i = 0; i < tensor.nbytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001b3;
  }
  return static_cast<std::int64_t>(hash);
}

/// SplitMix64's output function (Steele, Lea, Flood 2014): neighbouring numbers become seeds that share nothing.
std::uint64_t mixed(std::uint64_t number) {
  number += 0x9e3779b97f4a7c15;
  number = (number ^ (number >> 30U)) * 0xbf58476d1ce4e5b9;
  number = (number ^ (number >> 27U)) * 0x94d049bb133111eb;
  return number ^ (number >> 31U);
}

bool same_on_all_ranks(const ProcessGroup& group, std::int64_t value) {
  auto least = torch::tensor({value, ~value}, torch::dtype(torch::kInt64).device(group.device()));
  all_reduce(group, least, ReduceOp::kMin);
  return least[0].item<std::int64_t>() == ~least[1].item<std::int64_t>();  // the smallest is the largest
}

}  // namespace

Digits load_digits(const Options& options) {
  if (options.data.empty())
    return {generate_digits(kTrainSeed, options.train_images.value_or(8000)),
            generate_digits(kTestSeed, options.test_images.value_or(2000))};
  auto digits = read_digits(options.data);
  auto limit = [](DigitSet& set, std::optional<std::size_t> size) {
    if (size && *size < set.size()) set = set.slice(0, *size);
  };
  limit(digits.train, options.train_images);
  limit(digits.test, options.test_images);
  return digits;
}

std::vector<torch::Tensor> split_batches(const torch::Tensor& order, std::int64_t batch_size) {
  auto batches = order.split(batch_size);
  if (batches.back().numel() < 2) batches.pop_back();
  if (batches.empty())
    throw InputError("there are fewer than two examples per rank: give more images or use fewer ranks");
  return batches;
}

void start_epoch(int epoch, const Options& options, torch::optim::Optimizer& optimizer) {
  for (auto& parameters : optimizer.param_groups())
    parameters.options().set_lr(options.lr * std::pow(options.gamma, epoch));
}

void start_step(const Position& position, const Options& options, const ProcessGroup& group) {
  auto epoch = static_cast<std::uint64_t>(position.epoch) << 40U;
  auto step = static_cast<std::uint64_t>(position.step * group.world_size() + group.rank());
  torch::manual_seed(mixed(mixed(options.seed) + epoch + step));
}

StopQuestion::StopQuestion(const ProcessGroup& group)
    : group_(group),
      wish_(torch::zeros({2}, torch::dtype(torch::kInt64).device(group.device()))),
      answer_(torch::zeros({2}, torch::dtype(torch::kInt64).pinned_memory(group.device().is_cuda()))) {}

StopWish StopQuestion::ask(std::int64_t step) {
  if (!group_.device().is_cuda()) {
    send();
    return take();
  }
  if (step % kStepsBetweenQuestions != 0) return {};
  auto wish = arrived_ ? take() : StopWish{};
  send();
  return wish;
}

/// Numbers are written by kernels: a copy from ordinary memory would wait for the GPU.
void StopQuestion::send() {
  constexpr bool kNonBlocking = true;
  wish_[0].fill_(should_checkpoint());
  wish_[1].fill_(stop_signal());
  all_reduce(group_, wish_, ReduceOp::kMax);
  answer_.copy_(wish_, kNonBlocking);
  if (!group_.device().is_cuda()) return;
  const c10::impl::VirtualGuardImpl gpu(group_.device().type());
  arrived_.emplace(group_.device().type());
  arrived_->record(gpu.getStream(group_.device()));
}

StopWish StopQuestion::take() {
  if (arrived_) arrived_->synchronize();
  return {answer_[0].item<std::int64_t>() != 0, static_cast<int>(answer_[1].item<std::int64_t>())};
}

Score evaluate(TensorModule& network, const ProcessGroup& group, const BatchSource& source, std::int64_t batch_size) {
  torch::NoGradGuard no_grad;
  for (auto& buffer : network.buffers()) broadcast(group, buffer);
  network.eval();
  auto sums = torch::zeros({2}, torch::dtype(torch::kFloat64).device(group.device()));  // loss, correct answers
  auto share = torch::arange(group.rank(), source.size(), group.world_size()).to(group.device());
  for (const auto& indices : share.split(batch_size)) {
    if (indices.numel() == 0) continue;
    auto [images, labels] = source.batch(indices);
    auto output = network.forward(images);
    sums[0] += torch::nll_loss(output, labels, {}, at::Reduction::Sum);
    sums[1] += output.argmax(1).eq(labels).sum();
  }
  network.train();
  all_reduce(group, sums);
  return {sums[0].item<double>() / static_cast<double>(source.size()),
          static_cast<std::int64_t>(sums[1].item<double>()), source.size()};
}

void prepare_output(const Options& options, const ProcessGroup& group) {
  if (group.rank() != 0 || options.output.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (!error && ::access(options.output.c_str(), W_OK) != 0) error = {errno, std::generic_category()};
  if (error) throw InputError("cannot write to the output folder " + options.output + ": " + error.message());
}

void save(const Options& options, const ProcessGroup& group, const TensorModule& network,
          const torch::optim::Optimizer& optimizer, const Position& position) {
  if (group.rank() != 0 || options.output.empty()) return;
  std::int64_t samples = position.step * options.batch_size * group.world_size();  // of the epoch
  save_checkpoint(options.checkpoint(),
                  {.epoch = position.epoch,
                   .model = module_state(network, StateTensors::kShared),
                   .optimizer = optimizer_state(optimizer, StateTensors::kShared),
                   .extra = {{"seed", static_cast<std::int64_t>(options.seed)}, {"samples", samples}}});
}

Position resume(const Options& options, const ProcessGroup& group, TensorModule& network,
                torch::optim::Optimizer& optimizer) {
  Position position;
  std::int64_t samples = 0;
  if (options.resume) {
    auto checkpoint = load_checkpoint(*options.resume);
    load_module_state(network, checkpoint.model);
    load_optimizer_state(optimizer, std::move(checkpoint.optimizer));
    position.epoch = static_cast<int>(checkpoint.epoch);
    if (auto found = checkpoint.extra.find("samples"); found != checkpoint.extra.end()) samples = found->second.toInt();
    position.step = samples / (options.batch_size * group.world_size());
  }
  if (!same_on_all_ranks(group, position.epoch * kManySamples + samples))
    throw CheckpointError("the ranks found different checkpoints: the output folder must be shared by all nodes");
  return position;
}

bool equal_on_all_ranks(const TensorModule& network, const ProcessGroup& group) {
  return same_on_all_ranks(group, digest(network));
}

}  // namespace taas::train
