// A program of libtaas whose first batches taas-run can have prepared: test_loader.py.
//
// loader_program FOLDER [--uncaught | --reseed | --stream | --faulty]: notes in FOLDER/log what happens, in order:
// "get" for each example that is read, wherever that is, and "rank N" when a rank starts. Each rank writes the labels
// that it has had to FOLDER/labels-N. Nobody catches what serve_data throws; or the ranks' order has another seed than
// the one that serve_data was told; or ranks loop over a stream alone; or example 5 cannot be read, and ranks take
// their steps together.

#include <ATen/Functions.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <stdexcept>
#include <string>
#include <utility>

#include "taas/taas.hpp"

namespace {

constexpr std::size_t kExamples = 32;
constexpr std::size_t kFaulty = 5;

/// One write() to a file that is appended to: lines of several processes do not mix.
void note(const std::string& folder, const std::string& line) {
  std::ofstream(folder + "/log", std::ios::app) << line + "\n";
}

class Numbers : public taas::Dataset {
 public:
  explicit Numbers(std::string folder, bool faulty = false) : folder_(std::move(folder)), faulty_(faulty) {}
  [[nodiscard]] std::size_t size() const override { return kExamples; }
  taas::Tensors get(std::size_t index) override {
    note(folder_, "get");
    if (faulty_ && index == kFaulty) throw std::runtime_error("it is damaged");
    return {at::full({}, static_cast<std::int64_t>(index), at::kLong), at::rand({3})};
  }

 private:
  std::string folder_;
  bool faulty_;
};

/// Counts up to kExamples, each shard in steps of its own.
class Counting : public taas::IterableDataset {
 public:
  explicit Counting(std::string folder) : folder_(std::move(folder)) {}
  std::unique_ptr<taas::Examples> examples(const taas::Shard& shard) override {
    return std::make_unique<Pass>(folder_, shard.index(), shard.count());
  }

 private:
  struct Pass : taas::Examples {
    Pass(std::string to, std::size_t first, std::size_t by) : folder(std::move(to)), number(first), step(by) {}
    std::optional<taas::Tensors> next() override {
      if (number >= kExamples) return std::nullopt;
      note(folder, "get");
      auto label = static_cast<std::int64_t>(std::exchange(number, number + step));
      return taas::Tensors{at::full({}, label, at::kLong), at::rand({3})};
    }
    std::string folder;
    std::size_t number, step;
  };

  std::string folder_;
};

std::shared_ptr<taas::DistributedSampler> sampler_of(std::size_t rank, std::size_t world_size, std::uint64_t seed = 0) {
  return std::make_shared<taas::DistributedSampler>(
      kExamples, taas::DistributedSamplerOptions{.num_replicas = world_size, .rank = rank, .seed = seed});
}

std::size_t variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? 0 : std::stoul(value);
}

void write_labels(std::ostream& to, taas::Batches batches) {
  for (auto& batch : batches) {
    for (std::int64_t place = 0; place < batch[0].size(0); ++place) to << batch[0][place].item<std::int64_t>() << ' ';
  }
}

/// As in training: each step is a collective, which hangs where ranks take different numbers of them.
void write_steps(std::ostream& to, taas::Batches batches) {
  auto group = taas::init({.backend = taas::Backend::kGloo});
  for (auto& batch : batches) {
    auto labels = batch[0].clone();
    for (std::int64_t place = 0; place < labels.size(0); ++place) to << labels[place].item<std::int64_t>() << ' ';
    auto ranks = at::ones({1});
    taas::all_reduce(group, ranks);
  }
}

bool serve(const std::vector<taas::ServedLoader>& loaders, bool caught) {
  if (!caught) return taas::serve_data(loaders);
  try {
    return taas::serve_data(loaders);
  } catch (const taas::Exception& error) {
    std::cerr << error.what() << std::endl;
    std::exit(1);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string folder = argv[1], option = argc > 2 ? argv[2] : "";
  at::manual_seed(5);  // before serve_data: what is prepared has this seed
  auto numbers = std::make_shared<Numbers>(folder);
  taas::DataLoader train("train", numbers, {.batch_size = 2}), test("test set", numbers, {.batch_size = 4}),
      other("other", numbers), faulty("faulty", std::make_shared<Numbers>(folder, true), {.batch_size = 2}),
      stream("stream", std::make_shared<Counting>(folder), {.batch_size = 3, .num_workers = 2});
  auto first = [](std::size_t rank, std::size_t world_size) { return sampler_of(rank, world_size); };
  if (serve({{train, first}, {test, first}, other, stream, faulty}, option != "--uncaught")) return 0;

  const auto rank = variable("RANK"), world_size = variable("WORLD_SIZE");
  note(folder, "rank " + std::to_string(rank));
  auto sampler = sampler_of(rank, world_size, option == "--reseed" ? 1 : 0);
  std::ofstream labels(folder + "/labels-" + std::to_string(rank));
  if (option == "--stream") {
    write_labels(labels, stream.batches());
  } else if (option == "--faulty") {
    write_steps(labels, faulty.batches(*sampler));
  } else {
    for (auto* loader : {&train, &test}) write_labels(labels, loader->batches(*sampler));
  }
}
