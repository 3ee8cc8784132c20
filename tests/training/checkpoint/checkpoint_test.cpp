#include "taas/checkpoint.hpp"

#include <sys/resource.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.hpp"
#include "taas/adadelta.hpp"
#include "taas/error.hpp"

namespace checkpoint_test {

// That Python reads these files and that its own are read is tested by checkpoint_reference.py.
namespace {
namespace fs = std::filesystem;

/// A folder of its own for each test, gone with it.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("taas-checkpoint-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() { fs::remove_all(path); }
  [[nodiscard]] std::string file(const char* name = "checkpoint.pt") const { return (path / name).string(); }
  [[nodiscard]] std::ptrdiff_t files() const { return std::distance(fs::directory_iterator(path), {}); }
};

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

torch::nn::Sequential make_model(std::int64_t hidden = 8) {
  torch::manual_seed(4);
  return torch::nn::Sequential(torch::nn::Linear(5, hidden), torch::nn::BatchNorm1d(hidden),
                               torch::nn::Linear(hidden, 2));
}

/// Steps whose batches depend on their number alone.
template <class Optimizer>
void train(torch::nn::Sequential& model, Optimizer& optimizer, int begin, int end) {
  for (int step = begin; step < end; ++step) {
    optimizer.zero_grad();
    model->forward(torch::linspace(-1, 1 + step, 60).view({12, 5})).square().sum().backward();
    optimizer.step();
  }
}

bool same(const torch::nn::Sequential& one, const torch::nn::Sequential& other) {
  auto left = taas::module_state(*one), right = taas::module_state(*other);
  for (const auto& [name, tensor] : left)
    if (!at::equal(tensor, right.at(name))) return false;
  return left.size() == right.size();
}

/// Four steps at once against two, a checkpoint, and two by a fresh model and optimizer.
template <class Make>
void check_resume(Make make_optimizer) {
  Folder folder;
  auto straight = make_model(), first = make_model(), second = make_model();
  auto straight_optimizer = make_optimizer(straight), first_optimizer = make_optimizer(first);
  train(straight, straight_optimizer, 0, 4);
  train(first, first_optimizer, 0, 2);
  taas::save_checkpoint(
      folder.file(),
      {.epoch = 2, .model = taas::module_state(*first), .optimizer = taas::optimizer_state(first_optimizer)});
  auto checkpoint = taas::load_checkpoint(folder.file());
  auto second_optimizer = make_optimizer(second);
  taas::load_module_state(*second, checkpoint.model);
  taas::load_optimizer_state(second_optimizer, checkpoint.optimizer);
  CHECK(same(first, second));
  train(second, second_optimizer, 2, 4);
  CHECK(same(straight, second));
  CHECK_FALSE(same(first, second));
}

/// While it lives, no file of this process can grow beyond `bytes`: as on a full disk, write() fails.
struct FileSizeLimit {
  rlimit before{};
  explicit FileSizeLimit(rlim_t bytes) {
    std::signal(SIGXFSZ, SIG_IGN);
    ::getrlimit(RLIMIT_FSIZE, &before);
    rlimit tight{bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &tight);
  }
  ~FileSizeLimit() { ::setrlimit(RLIMIT_FSIZE, &before); }
};

}  // namespace

TEST_CASE("training goes on to the bit after a checkpoint, with any optimizer") {
  SECTION("Adadelta") {
    check_resume([](auto& model) { return taas::Adadelta(model->parameters(), taas::AdadeltaOptions(0.8)); });
  }
  SECTION("Adam") {
    check_resume([](auto& model) { return torch::optim::Adam(model->parameters(), 0.1); });
  }
  SECTION("SGD with momentum") {
    check_resume([](auto& model) {
      return torch::optim::SGD(model->parameters(), torch::optim::SGDOptions(0.01).momentum(0.9));
    });
  }
  SECTION("SGD, which remembers nothing") {
    check_resume([](auto& model) { return torch::optim::SGD(model->parameters(), 0.01); });
  }
}

TEST_CASE("options of the optimizer come back: the learning rate of a schedule") {
  auto model = make_model();
  taas::Adadelta optimizer(model->parameters());
  optimizer.param_groups()[0].options().set_lr(0.343);
  auto state = taas::optimizer_state(optimizer);
  taas::Adadelta other(model->parameters());
  taas::load_optimizer_state(other, state);
  CHECK(other.param_groups()[0].options().get_lr() == 0.343);
}

TEST_CASE("numbers, strings and generator states travel in extra") {
  Folder folder;
  auto generator = at::detail::createCPUGenerator(9);
  at::randn({3}, generator);
  taas::save_checkpoint(folder.file(), {.epoch = 7, .extra = {{"rng", generator.get_state()}, {"note", "tea"}}});
  auto expected = at::randn({5}, generator);
  auto checkpoint = taas::load_checkpoint(folder.file());
  CHECK(checkpoint.epoch == 7);
  CHECK(checkpoint.optimizer.isNone());
  CHECK(checkpoint.extra.at("note").toStringRef() == "tea");
  auto restored = at::detail::createCPUGenerator();
  restored.set_state(checkpoint.extra.at("rng").toTensor());
  CHECK(at::equal(at::randn({5}, restored), expected));
}

TEST_CASE("the same state makes the same bytes, whatever the addresses") {
  Folder folder;
  auto model = make_model();
  taas::Adadelta optimizer(model->parameters());
  train(model, optimizer, 0, 1);
  auto save = [&](const char* name) {
    taas::save_checkpoint(folder.file(name),
                          {.model = taas::module_state(*model), .optimizer = taas::optimizer_state(optimizer)});
    return bytes_of(folder.file(name));
  };
  CHECK(save("one.pt") == save("two.pt"));
}

TEST_CASE("a missing, cut off, damaged or foreign file is one line that names it") {
  Folder folder;
  auto path = folder.file();
  CHECK_THROWS_WITH(taas::load_checkpoint(path), ContainsSubstring(path) && ContainsSubstring("No such file"));
  taas::save_checkpoint(path, {.model = taas::module_state(*make_model())});
  auto whole = bytes_of(path);
  auto refused = [&](const std::string& bytes) {
    write_bytes(path, bytes);
    CHECK_THROWS_AS(taas::load_checkpoint(path), taas::CheckpointError);
    CHECK_THROWS_WITH(taas::load_checkpoint(path), ContainsSubstring(path) && !ContainsSubstring("\n"));
  };
  for (auto length : {std::size_t{0}, std::size_t{1}, whole.size() / 2, whole.size() - 1})
    refused(whole.substr(0, length));
  auto flipped = whole;
  flipped[whole.size() / 2] = static_cast<char>(~flipped[whole.size() / 2]);
  refused(flipped);
  CHECK_THROWS_WITH(taas::load_checkpoint(path), ContainsSubstring("cut off or damaged"));
  refused("not a checkpoint at all");
  CHECK_THROWS_WITH(taas::load_checkpoint(path), ContainsSubstring("not a file of torch.save"));
  CHECK_THROWS_WITH(taas::load_checkpoint(folder.path.string()),
                    ContainsSubstring("cannot read " + folder.path.string()));
}

TEST_CASE("the optimizer state of a scalar parameter is checked and resumed like any other") {
  auto scale = at::full({}, 2.0f).requires_grad_();
  auto train_scale = [](at::Tensor& parameter, torch::optim::Optimizer& optimizer) {
    optimizer.zero_grad();
    (parameter * parameter).backward();
    optimizer.step();
  };
  torch::optim::Adam optimizer({scale}, 0.1);
  train_scale(scale, optimizer);
  const auto state = taas::optimizer_state(optimizer);
  auto other = scale.detach().clone().requires_grad_();
  torch::optim::Adam resumed({other}, 0.1);
  taas::load_optimizer_state(resumed, state);
  train_scale(scale, optimizer);
  train_scale(other, resumed);
  CHECK(at::equal(scale, other));
  torch::optim::Adam vector({at::ones({3}).requires_grad_()}, 0.1);
  CHECK_THROWS_WITH(taas::load_optimizer_state(vector, state), ContainsSubstring("another shape"));
}

TEST_CASE("a state that does not fit changes nothing and says what differs") {
  auto model = make_model(), before = make_model();
  auto refuse = [&](const auto& state, const char* text) {
    CHECK_THROWS_WITH(taas::load_module_state(*model, state), ContainsSubstring(text));
    CHECK(same(model, before));
  };
  auto wider = taas::module_state(*make_model(9));
  refuse(wider, "0.bias is Float[9] in the checkpoint but Float[8] in the model");
  auto state = taas::module_state(*model);
  for (auto& [name, tensor] : state) tensor.zero_();
  state.emplace("3.weight", at::zeros({1}));
  refuse(state, "3.weight");
  state.erase("3.weight");
  state.erase("2.bias");
  refuse(state, "no tensor named 2.bias");
}

TEST_CASE("an optimizer state of another shape, size or kind is refused") {
  auto model = make_model(), wider = make_model(9);
  taas::Adadelta optimizer(model->parameters()), other(wider->parameters());
  train(wider, other, 0, 1);
  auto refuse = [&](const c10::IValue& state, const char* text) {
    CHECK_THROWS_WITH(taas::load_optimizer_state(optimizer, state), ContainsSubstring(text));
    CHECK(optimizer.state().empty());
  };
  refuse(taas::optimizer_state(other), "another shape");
  refuse(taas::optimizer_state(taas::Adadelta({wider->parameters()[0]})), "1 parameters in the checkpoint but 6");
  refuse(taas::optimizer_state(torch::optim::Adam(model->parameters())), "not of this kind");
  refuse(c10::IValue(), "not of this kind");
}

TEST_CASE("a write that fails leaves the former checkpoint whole and nothing beside it") {
  Folder folder;
  taas::save_checkpoint(folder.file(), {.epoch = 1, .model = taas::module_state(*make_model())});
  auto before = bytes_of(folder.file());
  {
    FileSizeLimit limit(before.size());
    CHECK_THROWS_WITH(taas::save_checkpoint(folder.file(), {.model = taas::module_state(*make_model(4000))}),
                      ContainsSubstring(folder.file()) && ContainsSubstring("File too large"));
  }
  CHECK(bytes_of(folder.file()) == before);
  CHECK(folder.files() == 1);
}

TEST_CASE("a folder that is not there is named") {
  Folder folder;
  auto path = folder.file("absent/checkpoint.pt");
  CHECK_THROWS_WITH(taas::save_checkpoint(path, {}), ContainsSubstring(path));
}

}  // namespace checkpoint_test
