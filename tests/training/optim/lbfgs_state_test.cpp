#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/lbfgs.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "catch.hpp"
#include "taas/checkpoint.hpp"
#include "taas/error.hpp"
#include "training/checkpoint/pickle.hpp"

namespace lbfgs_state_test {

// That Python goes on from these states, and this library from Python's, is tested by checkpoint_reference.py.
namespace {

namespace fs = std::filesystem;
using torch::optim::LBFGS;
using torch::optim::LBFGSOptions;

/// Too few iterations to converge.
LBFGSOptions options(const std::optional<std::string>& search) {
  return LBFGSOptions(0.1).max_iter(4).history_size(4).line_search_fn(search);
}

struct Minimised {
  torch::nn::Sequential model{torch::nn::Linear(3, 4), torch::nn::Linear(4, 2)};
  LBFGS optimizer;

  explicit Minimised(const LBFGSOptions& with) : optimizer(model->parameters(), with) {
    const torch::NoGradGuard no_grad;
    for (auto& parameter : model->parameters())
      parameter.copy_(torch::linspace(-1, 1, parameter.numel()).view_as(parameter));
  }
  void step() {
    optimizer.step([this] {
      optimizer.zero_grad();
      auto loss = (model->forward(torch::linspace(-1, 2, 18).view({6, 3})) - 1).pow(4).sum();
      loss.backward();
      return loss;
    });
  }
  [[nodiscard]] at::Tensor numbers() const {
    std::vector<at::Tensor> all;
    for (const auto& parameter : model->parameters()) all.push_back(parameter.detach().flatten());
    return at::cat(all);
  }
};

c10::Dict<c10::IValue, c10::IValue> only_state(const c10::IValue& of) {
  return of.toGenericDict().at("state").toGenericDict().at(0).toGenericDict();
}

std::string refusal(const c10::IValue& state, LBFGS& by) {
  try {
    taas::load_optimizer_state(by, state);
  } catch (const taas::CheckpointError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("LBFGS goes on to the bit from a checkpoint before it has converged") {
  const auto path = (fs::temp_directory_path() / ("taas-lbfgs-" + std::to_string(::getpid()) + ".pt")).string();
  for (const auto& search : {std::optional<std::string>(), std::optional<std::string>("strong_wolfe")}) {
    CAPTURE(search);
    Minimised straight(options(search)), resumed(LBFGSOptions(0.5));
    straight.step();
    straight.step();
    taas::save_checkpoint(path, {.model = taas::module_state(*straight.model),
                                 .optimizer = taas::optimizer_state(straight.optimizer, taas::StateTensors::kShared)});
    auto checkpoint = taas::load_checkpoint(path);
    fs::remove(path);
    taas::load_module_state(*resumed.model, checkpoint.model);
    taas::load_optimizer_state(resumed.optimizer, std::move(checkpoint.optimizer));
    const auto before = straight.numbers();
    straight.step();
    resumed.step();
    CHECK(at::equal(straight.numbers(), resumed.numbers()));
    CHECK_FALSE(at::equal(before, straight.numbers()));
  }
}

TEST_CASE("A state of LBFGS has Python's fields") {
  Minimised minimised(options(std::nullopt));
  minimised.step();
  const auto all = taas::optimizer_state(minimised.optimizer);
  const auto group = all.toGenericDict().at("param_groups").toListRef().at(0).toGenericDict();
  CHECK(group.at("max_iter").toInt() == 4);
  CHECK(group.at("max_eval").toInt() == 5);
  CHECK(group.at("line_search_fn").isNone());
  const auto state = only_state(all);
  CHECK(state.at("n_iter").toInt() == 4);
  CHECK(state.at("d").toTensor().numel() == minimised.numbers().numel());
  CHECK(state.at("old_dirs").toListRef().size() == 3);
  CHECK_FALSE(state.contains("al"));
}

TEST_CASE("What a copied state of LBFGS holds stays as it is") {
  Minimised minimised(options(std::nullopt));
  minimised.step();
  const auto state = only_state(taas::optimizer_state(minimised.optimizer));
  const auto before = state.at("prev_flat_grad").toTensor().clone();
  minimised.step();
  CHECK(at::equal(state.at("prev_flat_grad").toTensor(), before));
}

TEST_CASE("A state of LBFGS that does not fit changes nothing and says what differs") {
  Minimised minimised(options(std::nullopt)), fresh(options(std::nullopt));
  minimised.step();
  torch::nn::Linear narrow(3, 4), two(4, 2);
  LBFGS other({narrow->weight, narrow->bias, two->weight, at::ones({3}).requires_grad_()});
  CHECK_THAT(refusal(taas::optimizer_state(minimised.optimizer), other),
             ContainsSubstring("is for 26 numbers (d) but the parameters have 27"));

  const auto cut = taas::optimizer_state(minimised.optimizer);
  only_state(cut).insert_or_assign("ro", taas::plain_list());
  CHECK_THAT(refusal(cut, fresh.optimizer), ContainsSubstring("has 3 old_dirs, 3 old_stps and 0 ro"));

  torch::optim::Adam adam(minimised.model->parameters());
  adam.step();
  CHECK_THAT(refusal(taas::optimizer_state(adam), fresh.optimizer), ContainsSubstring("is not of LBFGS"));
  CHECK(fresh.optimizer.state().empty());
}

}  // namespace lbfgs_state_test
