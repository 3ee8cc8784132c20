// A small GPT that learns a text byte by byte, over any number of ranks.
// Quickstart has built it in build/release/bin. Elsewhere CMakeLists.txt beside it says how.
// gpt.py beside it is the same program in Python: each goes on from the other's checkpoint, to the bit.
//
//     taas-run --nproc-per-node 2 build/release/bin/gpt TEXT CHECKPOINT STEPS   # goes on from it, where it is
//
// Comments name the pages of docs where a part is explained.
#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <string>
#include <taas/taas.hpp>
#include <vector>

namespace {

namespace nn = torch::nn;

constexpr std::int64_t kBytes = 256, kWidth = 32, kHeads = 2, kBlocks = 2, kLength = 32, kBatch = 4;
constexpr std::int64_t kAccumulated = 2, kScheduled = 100;
constexpr double kDropout = 0.1, kRate = 3e-3, kDecay = 0.1, kLargestNorm = 1.0;

/// taas::Linear has Python's numbers for inputs of three dimensions (cpp/ddp.md, "Differences that remain").
struct BlockImpl : nn::Module {
  nn::LayerNorm before = register_module("before", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  taas::Linear mixed = register_module("mixed", taas::Linear(kWidth, 3 * kWidth));
  taas::Linear joined = register_module("joined", taas::Linear(kWidth, kWidth));
  nn::LayerNorm between = register_module("between", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  taas::Linear wide = register_module("wide", taas::Linear(kWidth, 4 * kWidth));
  taas::Linear narrow = register_module("narrow", taas::Linear(4 * kWidth, kWidth));

  at::Tensor forward(const at::Tensor& x) {
    const auto heads = mixed(before(x)).view({x.size(0), x.size(1), 3, kHeads, -1}).permute({2, 0, 3, 1, 4});
    const auto attended = at::scaled_dot_product_attention(heads[0], heads[1], heads[2], {}, 0.0, /*is_causal=*/true);
    const auto h = x + joined(attended.transpose(1, 2).reshape(x.sizes()));
    return h + at::dropout(narrow(at::gelu(wide(between(h)))), kDropout, is_training());
  }
};
TORCH_MODULE(Block);

struct GptImpl : nn::Module {
  nn::Embedding words = register_module("words", nn::Embedding(kBytes, kWidth));
  nn::Embedding places = register_module("places", nn::Embedding(kLength, kWidth));
  std::vector<Block> blocks;
  nn::LayerNorm last = register_module("last", nn::LayerNorm(nn::LayerNormOptions({kWidth})));
  at::Tensor head = register_parameter("head", words->weight);  // tied (cpp/training.md, "unique_tensors.hpp")

  GptImpl() {
    for (int i = 0; i < kBlocks; ++i) blocks.push_back(register_module("block" + std::to_string(i), Block()));
  }
  at::Tensor forward(const at::Tensor& text) {
    auto x = words(text) + places(at::arange(text.size(1), text.options()));
    for (auto& block : blocks) x = taas::recomputed(block, x);  // cpp/tools.md, "Activation checkpointing"
    return at::linear(last(x), head);
  }
};
TORCH_MODULE(Gpt);

at::Tensor read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.size() <= kLength + 1) throw taas::InvalidArgument(path + " is missing, or too short to learn from");
  return at::from_blob(const_cast<char*>(bytes.data()), {static_cast<std::int64_t>(bytes.size())}, at::kByte)
      .to(at::kLong);
}

/// Rows of the text, of kLength bytes and one: others for each number.
at::Tensor rows_of(const at::Tensor& text, std::int64_t number) {
  std::vector<at::Tensor> rows;
  for (std::int64_t row = number * kBatch; row < (number + 1) * kBatch; ++row) {
    rows.push_back(text.narrow(0, row * 7919 % (text.size(0) - kLength), kLength + 1));
  }
  return at::stack(rows);
}

/// Matrices decay, biases and norms do not. Options of a group are copies of the optimizer's.
taas::AdamW make_optimizer(const GptImpl& module) {
  std::vector<at::Tensor> matrices, others;
  for (const auto& parameter : module.parameters()) (parameter.dim() > 1 ? matrices : others).push_back(parameter);
  using Options = torch::optim::AdamWOptions;
  const auto group = [](std::vector<at::Tensor> parameters, double decay) {
    return torch::optim::OptimizerParamGroup(std::move(parameters),
                                             std::make_unique<Options>(Options(kRate).weight_decay(decay)));
  };
  return taas::AdamW({group(matrices, kDecay), group(others, 0)}, Options(kRate));
}

/// What the model finds most likely after the first bytes, as far as it can be printed.
std::string sample(Gpt& network, at::Tensor text, int count) {
  const at::NoGradGuard no_grad;
  network->eval();
  std::string written;
  for (int i = 0; i < count; ++i) {
    const auto next =
        network(text.slice(1, std::max<std::int64_t>(0, text.size(1) - kLength))).select(1, -1).argmax(-1);
    const auto byte = next.item<std::int64_t>();
    written += byte >= ' ' && byte <= '~' ? static_cast<char>(byte) : '?';
    text = at::cat({text, next.view({1, 1})}, 1);
  }
  network->train();
  return written;
}

void train(const std::string& text_path, const std::string& path, std::int64_t steps) {
  const auto group = taas::init();  // cpp/ddp.md, "Process groups in C++"
  const auto text = read_text(text_path).to(group.device());
  at::manual_seed(1);
  Gpt network;
  network->to(group.device());
  at::manual_seed(static_cast<std::uint64_t>(100 + group.rank()));                         // of dropout
  taas::DistributedDataParallel model(network, group, {.gradient_as_bucket_view = true});  // cpp/ddp.md
  auto optimizer = make_optimizer(*network);
  taas::LRScheduler schedule(optimizer, taas::CosineAnnealingLR{.T_max = kScheduled});  // cpp/tools.md

  std::int64_t step = 0;
  if (std::filesystem::exists(path)) {  // cpp/training.md, "Checkpoints of Python"
    auto checkpoint = taas::load_checkpoint(path);
    taas::load_state_dict(*network, checkpoint.model);
    taas::load_state_dict(optimizer, std::move(checkpoint.optimizer));
    schedule.load_state(checkpoint.extra.at("schedule"));
    taas::load_random_state(group, checkpoint.random);  // cpp/tools.md, "Random numbers"
    step = checkpoint.epoch;
  }
  double last_loss = 0;
  const auto backward = [&](std::int64_t number) {
    const auto rows = rows_of(text, number * group.world_size() + group.rank());
    const auto scores = model(rows.narrow(1, 0, kLength).contiguous());
    const auto loss = nn::functional::cross_entropy(scores.flatten(0, 1), rows.narrow(1, 1, kLength).reshape({-1}));
    model.backward(loss / kAccumulated);
    last_loss = loss.item<double>();
  };
  for (const auto end = step + steps; step < end; ++step) {
    model.zero_grad();
    for (std::int64_t i = 0; i + 1 < kAccumulated; ++i) {
      const auto alone = model.no_sync();  // cpp/ddp.md, "Backward"
      backward(step * kAccumulated + i);
    }
    backward((step + 1) * kAccumulated - 1);
    taas::clip_grad_norm_(network->parameters(), kLargestNorm);  // cpp/tools.md, "Clipping"
    optimizer.step();
    schedule.step();
  }
  taas::save_checkpoint(group, path,
                        {.epoch = step,
                         .model = taas::state_dict(*network),
                         .optimizer = taas::state_dict(optimizer, schedule),
                         .extra = {{"schedule", schedule.state()}}});
  if (group.rank() != 0) return;
  std::cout << "step " << step << ", loss " << last_loss << ": "
            << sample(network, text.narrow(0, 0, 8).view({1, 8}), 24) << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::cerr << "usage: gpt TEXT CHECKPOINT STEPS\n";
    return 2;
  }
  train(argv[1], argv[2], std::stoll(argv[3]));
} catch (const std::exception& error) {
  std::cerr << "gpt: " << error.what() << '\n';
  return 1;
}
