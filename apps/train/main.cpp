// The reference training program: a small convolutional network on digits, data parallel over any number of ranks.
// run() is all that a training needs; what is distributed in it is init, DistributedSampler, DistributedDataParallel.
#include <ATen/Parallel.h>
#include <torch/utils.h>

#include <iostream>
#include <string>
#include <vector>

#include "input_error.hpp"
#include "network.hpp"
#include "options.hpp"
#include "progress.hpp"
#include "taas/adadelta.hpp"
#include "taas/distributed_data_parallel.hpp"
#include "taas/error.hpp"
#include "taas/process_group.hpp"
#include "taas/sampler.hpp"
#include "trainer.hpp"

namespace taas::train {
namespace {

using Model = DistributedDataParallel<NetworkImpl>;

enum ExitCode { kDone = 0, kFailed = 1, kWrongInput = 2, kBelowTarget = 3 };

Backend backend_of(const Options& options) {
  if (options.backend == "gloo") return Backend::kGloo;
  return options.backend == "nccl" ? Backend::kNccl : Backend::kAuto;
}

void train_epoch(Model& model, Adadelta& optimizer, const Dataset& dataset, const std::vector<torch::Tensor>& batches,
                 Progress& progress) {
  std::int64_t step = 0, samples = 0;
  for (const auto& indices : batches) {
    auto [images, labels] = dataset.batch(indices);
    model.zero_grad();
    auto loss = torch::nll_loss(model(images), labels);
    loss.backward();
    optimizer.step();
    samples += labels.size(0);
    if (progress.wants_loss(++step)) progress.show(step, loss.item<double>(), samples);
  }
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

  torch::manual_seed(options.seed);
  Network network;
  network->to(group.device());
  Model model(network, group, {.gradient_as_bucket_view = true});
  Adadelta optimizer(network->parameters(), options.lr);
  DistributedSampler sampler(digits.train.size(), {.num_replicas = static_cast<std::size_t>(group.world_size()),
                                                   .rank = static_cast<std::size_t>(group.rank()),
                                                   .seed = options.seed});
  Dataset train(digits.train, group.device()), test(digits.test, group.device());

  auto first_epoch = resume(options, group, network, optimizer);
  auto score = evaluate(network, group, test);
  for (int epoch = first_epoch; epoch < options.epochs; ++epoch) {
    sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    auto batches = split_batches(sampler.indices(), options.batch_size);
    start_epoch(epoch, options, group, optimizer);
    progress.begin_epoch(epoch, static_cast<std::int64_t>(batches.size()));
    train_epoch(model, optimizer, train, batches, progress);
    score = evaluate(network, group, test);
    progress.end_epoch(score);
    save(options, group, network, optimizer, epoch + 1);
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
