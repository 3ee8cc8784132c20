// The reference training program: by default a small convolutional network on digits, over any number of ranks.
// run() is all that a training needs; what is distributed in it is init, DistributedSampler and the SpreadModel.
#include <ATen/Parallel.h>
#include <torch/utils.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "batch_source.hpp"
#include "comparison.hpp"
#include "input_error.hpp"
#include "job.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "step_times.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"
#include "taas/graphed_step.hpp"
#include "taas/process_group.hpp"
#include "taas/sampler.hpp"
#include "taas/stop.hpp"
#include "trainer.hpp"

namespace taas::train {
namespace {

using Clock = std::chrono::steady_clock;

enum ExitCode { kDone = 0, kFailed = 1, kWrongInput = 2, kBelowTarget = 3, kSignalled = 128 };

Backend backend_of(const Options& options) {
  if (options.backend == "gloo") return Backend::kGloo;
  return options.backend == "nccl" ? Backend::kNccl : Backend::kAuto;
}

/// What there is to learn from and, of digits, to be judged by.
struct Examples {
  std::unique_ptr<BatchSource> train;
  std::unique_ptr<BatchSource> test;  ///< null: nothing is tested
};

Examples make_examples(const Options& options, const Digits& digits, c10::Device device) {
  if (!options.learns_digits()) return {make_random_source(options, device), nullptr};
  return {make_digit_source(digits.train, device), make_digit_source(digits.test, device)};
}

std::string describe_examples(const Options& options, const Digits& digits) {
  if (!options.learns_digits()) return std::to_string(options.train_images.value_or(0)) + " random examples";
  return std::to_string(digits.train.size()) + " train and " + std::to_string(digits.test.size()) + " test images " +
         (options.data.empty() ? "generated" : "from " + options.data);
}

/// All that a training consists of.
struct Training {
  const Options& options;
  ProcessGroup group;
  SpreadModel model;
  Examples examples;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  Progress& progress;
  GraphedStep learn;  // indices → loss
  StopQuestion stop{group};
  std::vector<double> seconds{};    // of each step, for a plot
  bool checkpoint_written = false;  // on demand: once is enough
};

/// DDP rebuilds its gradient buckets after the first pass, and then sums in another order. With a pass ahead of the
/// training that changes nothing, each step of a resumed run has the same buckets as in a run that was never stopped.
void settle_buckets(Training& training) {
  if (training.options.parallel != "ddp") return;
  training.model.module->eval();
  auto [inputs, labels] = training.examples.train->batch(torch::zeros({2}, torch::kInt64));
  training.examples.train->loss(training.model.forward(inputs), labels).backward();
  training.model.zero_grad();
  training.model.module->train();
}

/// One step, timed when there is a plot to make: it then waits for the device.
torch::Tensor learn(Training& training, const torch::Tensor& indices) {
  const auto start = Clock::now();
  auto loss = training.learn({indices});
  if (training.options.plot.empty()) return loss;
  loss.item<double>();
  training.seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  return loss;
}

/// One step. Returns the signal that ends the training, or 0.
int train_step(Training& training, const torch::Tensor& indices, Position& position, std::int64_t& samples) {
  start_step(position, training.options, training.group);
  auto loss = learn(training, indices);
  samples += indices.numel();
  ++position.step;
  if (training.progress.wants_loss(position.step)) {
    training.progress.show(position.step, loss.item<double>(), samples);
  }
  auto wish = training.stop.ask(position.step);
  if (wish.signal != 0 || (wish.checkpoint && !training.checkpoint_written)) {
    save(training.options, training.group, *training.model.module, *training.optimizer, position);
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

std::optional<Score> test(Training& training) {
  if (!training.examples.test) return std::nullopt;
  return evaluate(*training.model.module, training.group, *training.examples.test, training.options.test_batch_size);
}

int finish(Training& training, const std::optional<Score>& score) {
  const auto& options = training.options;
  const auto& progress = training.progress;
  progress.end_run(score, options);
  if (options.check_equal) {
    if (!equal_on_all_ranks(*training.model.module, training.group)) {
      throw Exception("the parameters are not equal on all ranks");
    }
    progress.say("parameters equal on all " + std::to_string(training.group.world_size()) + " ranks");
  }
  if (!options.plot.empty() && training.group.rank() == 0) {
    write_plot(options.plot, make_plot(options, training.group, *training.examples.train, training.seconds));
    progress.say("step times: " + options.plot);
  }
  return options.target_accuracy && score->accuracy() < *options.target_accuracy ? kBelowTarget : kDone;
}

int run_epochs(Training& training, DistributedSampler& sampler) {
  const auto& options = training.options;
  const auto& group = training.group;
  auto position = resume(options, group, *training.model.module, *training.optimizer);
  catch_stop_signals();
  auto score = test(training);
  while (position.epoch < options.epochs) {
    sampler.set_epoch(static_cast<std::uint64_t>(position.epoch));
    auto batches = split_batches(sampler.indices().to(training.model.device), options.batch_size);
    start_epoch(position.epoch, options, *training.optimizer);
    training.progress.begin_epoch(position.epoch, static_cast<std::int64_t>(batches.size()));
    if (int signal = train_epoch(training, batches, position)) return kSignalled + signal;
    score = test(training);
    training.progress.end_epoch(score);
    position = {position.epoch + 1, 0};
    save(options, group, *training.model.module, *training.optimizer, position);
  }
  return finish(training, score);
}

int run(const Options& options) {
  if (options.threads > 0) at::set_num_threads(options.threads);
  auto digits = options.learns_digits() ? load_digits(options) : Digits{};
  auto group = taas::init({.backend = backend_of(options)});
  prepare_output(options, group);
  if (!options.plot.empty() && group.rank() == 0) check_plot_file(options.plot);
  Progress progress(group.rank(), group.world_size(), options.epochs, options.log_every);
  progress.begin_run(group.device().str(), group.backend(), describe_examples(options, digits), options);

  // Threads and copies between devices are not for a graph.
  const bool graph = options.graph && options.parallel == "ddp" && GraphedStep::is_possible(group);
  std::optional<OwnStream> stream;
  if (graph) stream.emplace(group.device());

  torch::manual_seed(options.seed);
  auto model = make_spread_model(options, group);
  auto examples = make_examples(options, digits, model.device);
  auto [optimizer, recordable] = make_optimizer(options, *model.module, graph);
  const auto count = static_cast<std::size_t>(examples.train->size());
  Training training{options,
                    group,
                    std::move(model),
                    std::move(examples),
                    std::move(optimizer),
                    progress,
                    GraphedStep(group,
                                [&](const auto& inputs) {
                                  return learn_from(training.model, *training.optimizer, *training.examples.train,
                                                    inputs[0]);
                                },
                                {recordable}, {.enabled = graph})};
  DistributedSampler sampler(count, {.num_replicas = static_cast<std::size_t>(group.world_size()),
                                     .rank = static_cast<std::size_t>(group.rank()),
                                     .seed = options.seed});
  if (training.learn.uses_graph()) progress.say("steps are replayed from a CUDA graph");
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
