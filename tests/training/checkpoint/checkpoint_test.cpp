#include "taas/checkpoint.hpp"

#include <sys/resource.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "../spawn_ranks.hpp"
#include "catch.hpp"
#include "taas/adadelta.hpp"
#include "taas/error.hpp"

namespace checkpoint_test {

// That Python reads these files, that its own are read, and that training goes on to the bit with any optimizer, is
// tested by checkpoint_reference.py and optimizer_reference.py.
namespace {
namespace fs = std::filesystem;
using taas::StateTensors;
using taas::test::problems;
using taas::test::spawn_ranks;

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

bool same(const torch::nn::Sequential& one, const torch::nn::Sequential& other) {
  auto left = taas::module_state(*one), right = taas::module_state(*other);
  for (const auto& [name, tensor] : left)
    if (!at::equal(tensor, right.at(name))) return false;
  return left.size() == right.size();
}

/// A model and an optimizer that have made a step.
struct Trained {
  torch::nn::Linear model{3, 2};
  torch::optim::Adam optimizer{model->parameters(), torch::optim::AdamOptions(0.1)};

  Trained() { step(); }
  void step() {
    optimizer.zero_grad();
    model(at::ones({4, 3})).square().sum().backward();
    optimizer.step();
  }
};

at::Tensor moment_in(const c10::IValue& state) {
  return state.toGenericDict().at("state").toGenericDict().at(0).toGenericDict().at("exp_avg").toTensor();
}

/// It may remember more than Adam.
struct OwnAdam : torch::optim::Adam {
  using Adam::Adam;
};

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
  const Trained trained;
  auto scalar = at::full({}, 2.0f).requires_grad_();
  torch::optim::Adam of_scalar({scalar}, 0.1);
  (scalar * scalar).backward();
  of_scalar.step();
  const auto refuse = [](std::vector<at::Tensor> parameters, const c10::IValue& state, const char* text) {
    torch::optim::Adam optimizer(std::move(parameters));
    CHECK_THROWS_WITH(taas::load_optimizer_state(optimizer, state), ContainsSubstring(text));
    CHECK(optimizer.state().empty());
  };
  const auto weight = at::ones({2, 4}), bias = at::ones({2});
  refuse({weight, bias}, taas::optimizer_state(trained.optimizer), "another shape");
  refuse({bias}, taas::optimizer_state(of_scalar), "another shape");
  refuse({bias}, taas::optimizer_state(trained.optimizer), "2 parameters in the checkpoint but 1");
  refuse({bias}, taas::optimizer_state(taas::Adadelta({bias})), "not of this kind");
  refuse({bias}, c10::IValue(), "not of this kind");
}

TEST_CASE("an optimizer of another kind is refused, with its class and the way out") {
  Trained trained;
  OwnAdam optimizer(trained.model->parameters());
  CHECK_THROWS_WITH(taas::optimizer_state(optimizer),
                    ContainsSubstring("OwnAdam") && ContainsSubstring("torch::save(optimizer, path)"));
  CHECK_THROWS_WITH(taas::load_optimizer_state(optimizer, taas::optimizer_state(trained.optimizer)),
                    ContainsSubstring("OwnAdam"));
}

TEST_CASE("a copied state stays as it is, and a shared one is the tensors themselves") {
  Trained trained;
  CHECK(taas::module_state(*trained.model).at("weight").data_ptr() != trained.model->weight.data_ptr());
  CHECK(taas::module_state(*trained.model, StateTensors::kShared).at("weight").data_ptr() ==
        trained.model->weight.data_ptr());
  const auto copied = taas::optimizer_state(trained.optimizer);
  const auto shared = taas::optimizer_state(trained.optimizer, StateTensors::kShared);
  const auto before = moment_in(copied).clone();
  trained.step();
  CHECK(at::equal(moment_in(copied), before));
  CHECK_FALSE(at::equal(moment_in(shared), before));
}

TEST_CASE("a state that is given away is taken over, unless somebody else has it") {
  Trained trained, other;
  auto state = taas::optimizer_state(trained.optimizer);
  const auto* memory = moment_in(state).data_ptr();
  const auto memory_of = [](const Trained& of) {
    return moment_in(taas::optimizer_state(of.optimizer, StateTensors::kShared)).data_ptr();
  };
  taas::load_optimizer_state(other.optimizer, state);
  CHECK(memory_of(other) != memory);
  taas::load_optimizer_state(other.optimizer, std::move(state));
  CHECK(memory_of(other) == memory);
  taas::load_optimizer_state(other.optimizer, taas::optimizer_state(trained.optimizer, StateTensors::kShared));
  CHECK(memory_of(other) != memory_of(trained));
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
  const auto absent = folder.file("absent/checkpoint.pt");
  CHECK_THROWS_WITH(taas::save_checkpoint(absent, {}), ContainsSubstring(absent));
}

TEST_CASE("a checkpoint is resumed by other numbers of ranks, sharded or whole, to the bit") {
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "first_world", {.world_size = 4})) == "");
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "second_world", {.world_size = 2})) == "");
  CHECK(problems(spawn_ranks(TAAS_RANK_PROGRAM, "third_world", {.world_size = 8})) == "");
}

}  // namespace checkpoint_test
