// The reference training program: a small convolutional network on digits, data parallel over any number of ranks.
// run() is all that a training needs; what is distributed in it is init, DistributedSampler, DistributedDataParallel.
#include <ATen/Parallel.h>
#include <torch/utils.h>

#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "input_error.hpp"
#include "network.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "taas/adadelta.hpp"
#include "taas/collectives.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/graphed_step.hpp"
#include "taas/process_group.hpp"
#include "taas/sampler.hpp"
#include "taas/stop.hpp"
#include "trainer.hpp"

namespace taas::train {
namespace {

using Model = DistributedDataParallel<NetworkImpl>;

enum ExitCode { kDone = 0, kFailed = 1, kWrongInput = 2, kBelowTarget = 3, kSignalled = 128 };

Backend backend_of(const Options& options) {
  if (options.backend == "gloo") return Backend::kGloo;
  return options.backend == "nccl" ? Backend::kNccl : Backend::kAuto;
}

/// All that a training consists of.
struct Training {
  const Options& options;
  ProcessGroup group;
  Network network;
  Model model;
  Adadelta optimizer;
  Progress& progress;
  GraphedStep learn;  // indices → loss
  StopQuestion stop{group};
  bool checkpoint_written = false;  // on demand: once is enough
};

/// DDP rebuilds its gradient buckets after the first pass, and then sums in another order. With a pass ahead of the
/// training that changes nothing, each step of a resumed run has the same buckets as in a run that was never stopped.
void settle_buckets(Training& training, const Dataset& dataset) {
  training.network->eval();
  auto [images, labels] = dataset.batch(torch::zeros({2}, torch::kInt64));
  torch::nll_loss(training.model(images), labels).backward();
  training.model.zero_grad();
  training.network->train();
}

/// What a step does on the device, and nothing else, so that it can be recorded. Returns the loss.
torch::Tensor learn_from(Training& training, const Dataset& dataset, const torch::Tensor& indices) {
  auto [images, labels] = dataset.batch(indices);
  training.model.zero_grad();
  auto loss = torch::nll_loss(training.model(images), labels);
  loss.backward();
  training.optimizer.step();
  return loss;
}

/// One step. Returns the signal that ends the training, or 0.
int train_step(Training& training, const torch::Tensor& indices, Position& position, std::int64_t& samples) {
  start_step(position, training.options, training.group);
  auto loss = training.learn({indices});
  samples += indices.numel();
  ++position.step;
  if (training.progress.wants_loss(position.step)) {
    training.progress.show(position.step, loss.item<double>(), samples);
  }
  auto wish = training.stop.ask(position.step);
  if (wish.signal != 0 || (wish.checkpoint && !training.checkpoint_written)) {
    save(training.options, training.group, training.network, training.optimizer, position);
    barrier(training.group);  // what rank 0 closes while others end would not count as whole
    training.progress.say("checkpoint written on demand after step " + std::to_string(position.step));
    training.checkpoint_written = true;
  }
  return wish.signal;
}

int train_epoch(Training& training, const std::vector<torch::Tensor>& batches, Position& position) {
  std::int64_t samples = 0;
  for (auto next = position.step; next < static_cast<std::int64_t>(batches.size()); ++next) {
    int signal = train_step(training, batches[static_cast<std::size_t>(next)], position, samples);
    if (signal != 0) return signal;
  }
  return 0;
}

int finish(const Options& options, const ProcessGroup& group, const Network& network, const Score& score,
           const Progress& progress) {
  progress.end_run(score, options);
  if (options.check_equal) {
    if (!equal_on_all_ranks(network, group)) throw Exception("the parameters are not equal on all ranks");
    progress.say("parameters equal on all " + std::to_string(group.world_size()) + " ranks");
  }
  return options.target_accuracy && score.accuracy() < *options.target_accuracy ? kBelowTarget : kDone;
}

int run(const Options& options) {
  if (options.threads > 0) at::set_num_threads(options.threads);
  auto digits = load_digits(options);
  auto group = taas::init({.backend = backend_of(options)});
  prepare_output(options, group);
  Progress progress(group.rank(), group.world_size(), options.epochs);
  progress.begin_run(group.device().str(), group.backend(), digits, options);

  const bool graph = options.graph && GraphedStep::is_possible(group);
  std::optional<OwnStream> stream;
  if (graph) stream.emplace(group.device());

  torch::manual_seed(options.seed);
  Network network;
  network->to(group.device());
  Dataset train(digits.train, group.device()), test(digits.test, group.device());
  Training training{options,
                    group,
                    network,
                    Model(network, group, {.gradient_as_bucket_view = true}),
                    Adadelta(network->parameters(), options.lr, {.capturable = graph}),
                    progress,
                    GraphedStep(group, [&](const auto& inputs) { return learn_from(training, train, inputs[0]); },
                                {&training.optimizer}, {.enabled = graph})};
  DistributedSampler sampler(digits.train.size(), {.num_replicas = static_cast<std::size_t>(group.world_size()),
                                                   .rank = static_cast<std::size_t>(group.rank()),
                                                   .seed = options.seed});

  if (training.learn.uses_graph()) progress.say("steps are replayed from a CUDA graph");
  settle_buckets(training, train);
  auto position = resume(options, group, network, training.optimizer);
  catch_stop_signals();
  auto score = evaluate(network, group, test);
  while (position.epoch < options.epochs) {
    sampler.set_epoch(static_cast<std::uint64_t>(position.epoch));
    auto batches = split_batches(sampler.indices().to(group.device()), options.batch_size);
    start_epoch(position.epoch, options, training.optimizer);
    progress.begin_epoch(position.epoch, static_cast<std::int64_t>(batches.size()));
    if (int signal = train_epoch(training, batches, position)) return kSignalled + signal;
    score = evaluate(network, group, test);
    progress.end_epoch(score);
    position = {position.epoch + 1, 0};
    save(options, group, network, training.optimizer, position);
  }
  return finish(options, group, network, score, progress);
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
