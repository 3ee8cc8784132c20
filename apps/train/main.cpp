// The reference training program: a small convolutional network on digits, over any number of ranks. run() is all that
// a training needs; what is distributed in it is init, DistributedSampler and DistributedDataParallel.
#include <ATen/Parallel.h>
#include <torch/nn/functional/activation.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <random>
#include <string>
#include <system_error>
#include <tuple>
#include <vector>

#include "digits.hpp"
#include "input_error.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "taas/adadelta.hpp"
#include "taas/checkpoint.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/process_group.hpp"
#include "taas/sampler.hpp"
#include "taas/stop.hpp"

namespace taas::train {
namespace {

constexpr double kMean = 0.1307, kDeviation = 0.3081;   // of the pixels of MNIST, 0…1
constexpr std::uint64_t kTrainSeed = 1, kTestSeed = 2;  // of the generated digits: whatever --seed is, the same data
constexpr std::int64_t kStepsBetweenQuestions = 8;      // on a GPU, which the answer has to wait for

enum ExitCode { kDone = 0, kFailed = 1, kWrongInput = 2, kBelowTarget = 3, kSignalled = 128 };

/// The folder of --data, or generated digits; the same on every rank. Throws InputError.
Digits load_digits(const Options& options) {
  if (options.data.empty())
    return {generate_digits(kTrainSeed, options.train_images.value_or(8000)),
            generate_digits(kTestSeed, options.test_images.value_or(2000))};
  auto digits = read_digits(options.data);
  digits.train = digits.train.slice(0, std::min(digits.train.size(), options.train_images.value_or(SIZE_MAX)));
  digits.test = digits.test.slice(0, std::min(digits.test.size(), options.test_images.value_or(SIZE_MAX)));
  return digits;
}

/// A small convolutional network for digits: images (N, 1, 28, 28) in, log-probabilities (N, 10) out.
class NetworkImpl : public torch::nn::Module {
 public:
  torch::Tensor forward(torch::Tensor x) {
    x = conv1(x).relu_();
    x = torch::max_pool2d(conv2(x), 2).relu_();  // the same as the pool of the relu, on a quarter of the numbers
    x = dropout1(x).flatten(1);
    x = batchnorm(fc1(x)).relu_();
    return torch::log_softmax(fc2(dropout2(x)), 1);
  }

 private:
  torch::nn::Conv2d conv1 = register_module("conv1", torch::nn::Conv2d(torch::nn::Conv2dOptions(1, 32, 3)));
  torch::nn::Conv2d conv2 = register_module("conv2", torch::nn::Conv2d(torch::nn::Conv2dOptions(32, 64, 3)));
  torch::nn::Dropout2d dropout1 = register_module("dropout1", torch::nn::Dropout2d(0.25));
  torch::nn::Linear fc1 = register_module("fc1", torch::nn::Linear(9216, 128));
  torch::nn::BatchNorm1d batchnorm = register_module("batchnorm", torch::nn::BatchNorm1d(128));
  torch::nn::Dropout dropout2 = register_module("dropout2", torch::nn::Dropout(0.5));
  torch::nn::Linear fc2 = register_module("fc2", torch::nn::Linear(128, 10));
};
TORCH_MODULE(Network);

/// Digits on one device.
struct Examples {
  torch::Tensor images;  ///< uint8 (size, 1, 28, 28)
  torch::Tensor labels;  ///< int64 (size)

  Examples(const DigitSet& digits, c10::Device device)
      : images(torch::tensor(digits.pixels).view({-1, 1, kDigitSide, kDigitSide}).to(device)),
        labels(torch::tensor(digits.labels).to(device, torch::kInt64)) {}

  struct Batch {
    torch::Tensor images;  ///< float (n, 1, 28, 28), mean 0 and deviation 1
    torch::Tensor labels;  ///< int64 (n)
  };
  [[nodiscard]] Batch batch(const torch::Tensor& indices) const {
    auto chosen = images.index_select(0, indices).to(torch::kFloat);
    return {chosen.div_(255).sub_(kMean).div_(kDeviation), labels.index_select(0, indices)};
  }
};

/// How far a training is.
struct Position {
  int epoch = 0;          ///< epochs that are done
  std::int64_t step = 0;  ///< steps of the next one that are done
};

/// All that a training consists of.
struct Training {
  const Options& options;
  ProcessGroup group;
  Examples train;
  Examples test;
  Network network;
  DistributedDataParallel<NetworkImpl> model;
  Adadelta optimizer;
  Progress progress;
  bool checkpoint_written = false;  // on demand: once is enough
};

/// This rank's order of an epoch in batches. A last batch of one example is left out: batch norm cannot learn from one.
std::vector<torch::Tensor> split_batches(const torch::Tensor& order, std::int64_t batch_size) {
  auto batches = order.split(batch_size);
  if (batches.back().numel() < 2) batches.pop_back();
  if (batches.empty())
    throw InputError("there are fewer than two examples per rank: give more images or use fewer ranks");
  return batches;
}

/// Sets the seed of dropout, another one for each rank and step: a resumed run goes on as if it had never stopped.
void start_step(const Position& position, const Training& training) {
  const auto of_run = training.options.seed;
  std::seed_seq words{of_run, of_run >> 32U, static_cast<std::uint64_t>(position.epoch),
                      static_cast<std::uint64_t>(position.step * training.group.world_size() + training.group.rank())};
  std::uint32_t seed = 0;
  words.generate(&seed, &seed + 1);
  torch::manual_seed(seed);
}

/// Whether any rank should write a checkpoint, and which signal any of them was told to end by: one answer for all.
std::array<std::int64_t, 2> ask_to_stop(const ProcessGroup& group, std::int64_t step, std::int64_t steps) {
  if (group.device().is_cuda() && step % kStepsBetweenQuestions != 0 && step != steps) return {};
  auto wish = torch::tensor({std::int64_t{should_checkpoint()}, std::int64_t{stop_signal()}}, group.device());
  all_reduce(group, wish, ReduceOp::kMax);
  wish = wish.cpu();
  return {wish[0].item<std::int64_t>(), wish[1].item<std::int64_t>()};
}

/// Each rank judges its share of the images, in batches, with the buffers of rank 0, the ones that a checkpoint holds.
Score evaluate(Training& training) {
  torch::NoGradGuard no_grad;
  const auto& [options, group] = std::tie(training.options, training.group);
  for (auto& buffer : training.network->buffers()) broadcast(group, buffer);
  training.network->eval();
  const auto count = training.test.labels.size(0);
  auto sums = torch::zeros({2}, torch::dtype(torch::kFloat64).device(group.device()));  // loss, correct answers
  auto share = torch::arange(group.rank(), count, group.world_size()).to(group.device());
  for (const auto& indices : share.split(options.test_batch_size)) {
    if (indices.numel() == 0) continue;
    auto [images, labels] = training.test.batch(indices);
    auto output = training.network->forward(images);
    sums[0] += torch::nll_loss(output, labels, {}, at::Reduction::Sum);
    sums[1] += output.argmax(1).eq(labels).sum();
  }
  training.network->train();
  all_reduce(group, sums);
  return {sums[0].item<double>() / static_cast<double>(count), static_cast<std::int64_t>(sums[1].item<double>()),
          count};
}

/// Rank 0 makes the output folder, so that a wrong one is known before the training. Throws InputError.
void prepare_output(const Options& options, const ProcessGroup& group) {
  if (group.rank() != 0 || options.output.empty()) return;
  std::error_code error;
  std::filesystem::create_directories(options.output, error);
  if (!error && ::access(options.output.c_str(), W_OK) != 0) error = {errno, std::generic_category()};
  if (error) throw InputError("cannot write to the output folder " + options.output + ": " + error.message());
}

/// Rank 0 writes the checkpoint, when there is a folder for it.
void save(const Training& training, const Position& position) {
  const auto& options = training.options;
  if (training.group.rank() != 0 || options.output.empty()) return;
  std::int64_t samples = position.step * options.batch_size * training.group.world_size();  // of the epoch
  save_checkpoint(options.checkpoint(),
                  {.epoch = position.epoch,
                   .model = module_state(*training.network, StateTensors::kShared),
                   .optimizer = optimizer_state(training.optimizer, StateTensors::kShared),
                   .extra = {{"seed", static_cast<std::int64_t>(options.seed)}, {"samples", samples}}});
}

/// To the bit.
bool same_on_all_ranks(const ProcessGroup& group, const torch::Tensor& value) {
  auto least = value.flatten().view(torch::kByte).to(group.device(), /*non_blocking=*/false, /*copy=*/true);
  auto most = least.clone();
  all_reduce(group, least, ReduceOp::kMin);
  all_reduce(group, most, ReduceOp::kMax);
  return torch::equal(least, most);
}

/// Loads the checkpoint, when there is one to resume from. Within an epoch, a run with another number of ranks goes on
/// after as many samples. Throws CheckpointError when the ranks do not find the same one.
Position resume(Training& training) {
  Position position;
  std::int64_t samples = 0;
  if (training.options.resume) {
    auto checkpoint = load_checkpoint(*training.options.resume);
    load_module_state(*training.network, checkpoint.model);
    load_optimizer_state(training.optimizer, std::move(checkpoint.optimizer));
    position.epoch = static_cast<int>(checkpoint.epoch);
    if (auto found = checkpoint.extra.find("samples"); found != checkpoint.extra.end()) samples = found->second.toInt();
    position.step = samples / (training.options.batch_size * training.group.world_size());
  }
  if (!same_on_all_ranks(training.group, torch::tensor({std::int64_t{position.epoch}, samples}))) {
    throw CheckpointError("the ranks found different checkpoints: the output folder must be shared by all nodes");
  }
  return position;
}

std::string describe(const Options& options, const Digits& digits, const ProcessGroup& group) {
  const auto ranks = group.world_size();
  const std::string backend(group.backend());
  return "training on " + std::to_string(ranks) + (ranks == 1 ? " rank (" : " ranks (") + group.device().str() + ", " +
         (backend == "none" ? "alone" : backend) + "), batch " + std::to_string(options.batch_size) + " per rank; " +
         std::to_string(digits.train.size()) + " train and " + std::to_string(digits.test.size()) + " test images " +
         (options.data.empty() ? "generated" : "from " + options.data);
}

/// DDP rebuilds its gradient buckets after the first pass, and then sums in another order. With a pass ahead of the
/// training that changes nothing, each step of a resumed run has the same buckets as in a run that was never stopped.
void settle_buckets(Training& training) {
  training.model.eval();
  auto [images, labels] = training.train.batch(torch::zeros({2}, training.train.labels.options()));
  torch::nll_loss(training.model.forward(images), labels).backward();
  training.model.zero_grad();
  training.model.train();
}

/// One step. Returns the signal that ends the training, or 0.
int train_step(Training& training, const std::vector<torch::Tensor>& batches, Position& position,
               std::int64_t& samples) {
  start_step(position, training);
  const auto& indices = batches[static_cast<std::size_t>(position.step)];
  auto [images, labels] = training.train.batch(indices);
  training.model.zero_grad();
  auto loss = torch::nll_loss(training.model.forward(images), labels);
  loss.backward();
  training.optimizer.step();
  samples += indices.numel();
  ++position.step;
  if (training.progress.wants_loss(position.step)) training.progress.show(position.step, loss.item<double>(), samples);
  const auto [checkpoint, signal] = ask_to_stop(training.group, position.step, std::ssize(batches));
  if (signal != 0 || (checkpoint != 0 && !training.checkpoint_written)) {
    save(training, position);
    barrier(training.group);  // what rank 0 closes while others end would not count as whole
    training.progress.say("checkpoint written on demand after step " + std::to_string(position.step));
    training.checkpoint_written = true;
  }
  return static_cast<int>(signal);
}

int train_epoch(Training& training, const std::vector<torch::Tensor>& batches, Position& position) {
  std::int64_t samples = 0;
  while (position.step < std::ssize(batches)) {
    if (int signal = train_step(training, batches, position, samples)) return signal;
  }
  return 0;
}

int run_epochs(Training& training, DistributedSampler& sampler) {
  const auto& options = training.options;
  auto position = resume(training);
  catch_stop_signals();
  auto score = evaluate(training);
  while (position.epoch < options.epochs) {
    sampler.set_epoch(static_cast<std::uint64_t>(position.epoch));
    auto batches = split_batches(sampler.indices().to(training.group.device()), options.batch_size);
    for (auto& parameters : training.optimizer.param_groups()) {
      parameters.options().set_lr(options.lr * std::pow(options.gamma, position.epoch));
    }
    training.progress.begin_epoch(position.epoch, std::ssize(batches));
    if (int signal = train_epoch(training, batches, position)) return kSignalled + signal;
    score = evaluate(training);
    training.progress.end_epoch(score);
    position = {position.epoch + 1, 0};
    save(training, position);
  }
  training.progress.end_run(score);
  if (options.check_equal) {
    for (const auto& [name, tensor] : module_state(*training.network)) {
      if (!same_on_all_ranks(training.group, tensor)) throw Exception(name + " is not equal on all ranks");
    }
    training.progress.say("parameters equal on all " + std::to_string(training.group.world_size()) + " ranks");
  }
  return options.target_accuracy && score.accuracy() < *options.target_accuracy ? kBelowTarget : kDone;
}

int run(const Options& options) {
  if (options.threads > 0) at::set_num_threads(options.threads);
  auto digits = load_digits(options);
  const std::map<std::string, Backend> backends{
      {"auto", Backend::kAuto}, {"gloo", Backend::kGloo}, {"nccl", Backend::kNccl}};
  auto group = taas::init({.backend = backends.at(options.backend)});
  prepare_output(options, group);
  Progress progress(group.rank(), group.world_size(), options);
  progress.say(describe(options, digits, group));
  if (options.resume) progress.say("going on from " + *options.resume);

  torch::manual_seed(options.seed);
  Network network;
  network->to(group.device());
  Training training{.options = options,
                    .group = group,
                    .train = Examples(digits.train, group.device()),
                    .test = Examples(digits.test, group.device()),
                    .network = network,
                    .model = {network, group, {.gradient_as_bucket_view = true}},
                    .optimizer = Adadelta(network->parameters(), options.lr),
                    .progress = progress};
  DistributedSampler sampler(digits.train.size(), {.num_replicas = static_cast<std::size_t>(group.world_size()),
                                                   .rank = static_cast<std::size_t>(group.rank()),
                                                   .seed = options.seed});
  settle_buckets(training);
  return run_epochs(training, sampler);
}

/// The first line: what torch throws goes on with its call stack.
int fail(const std::exception& error, ExitCode code) {
  std::string text = error.what();
  std::cerr << "train: " << text.substr(0, text.find('\n')) << std::endl;
  return code;
}

}  // namespace
}  // namespace taas::train

int main(int argc, char** argv) {
  using namespace taas::train;
  try {
    auto parsed = parse_options(argc, argv);
    return parsed.exit_code ? *parsed.exit_code : run(parsed.options);
  } catch (const InputError& error) {
    return fail(error, kWrongInput);
  } catch (const taas::ConfigError& error) {
    return fail(error, kWrongInput);
  } catch (const std::exception& error) {
    return fail(error, kFailed);
  }
}
