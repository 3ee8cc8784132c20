// ResNet-18 that learns a folder of images, over any number of ranks: FOLDER/train/CLASS/*.jpg, FOLDER/val/CLASS/*.jpg.
// Quickstart has built it in build/release/bin. Elsewhere CMakeLists.txt beside it says how.
// resnet.py beside it is the same program in Python, with torchvision: each goes on from the other's checkpoint, to the
// bit where images are PNG (decoders of JPEG differ).
//
//     taas-run --nproc-per-node 2 build/release/bin/resnet FOLDER CHECKPOINT EPOCHS   # goes on from it, where it is
//     taas-run --gpus 8 --cpus 2 build/release/bin/resnet FOLDER CHECKPOINT EPOCHS    # two machines decode the images
//
// Comments name the pages of docs where a part is explained.
#include <ATen/ATen.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/functional/pooling.h>
#include <torch/nn/init.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#define STB_IMAGE_IMPLEMENTATION
#include <stb/stb_image.h>  // package libstb-dev

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <taas/taas.hpp>
#include <utility>
#include <vector>

namespace {

namespace fs = std::filesystem;
namespace nn = torch::nn;

constexpr std::size_t kBatch = 4;
constexpr double kRate = 0.01, kMomentum = 0.9, kDecay = 1e-4, kFactor = 0.1;
constexpr std::int64_t kEpochsOfRate = 30, kUsualSize = 224;

/// The classes are the folders in a folder, in the order of their names, as torchvision.datasets.ImageFolder has them.
class ImageFolder : public taas::Dataset {  // data-workers.md
 public:
  ImageFolder(const fs::path& folder, std::int64_t size) : size_(size) {
    std::vector<fs::path> classes;
    if (fs::is_directory(folder)) {
      for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.is_directory()) classes.push_back(entry.path());
      }
    }
    std::sort(classes.begin(), classes.end());
    for (const auto& one : classes) add_class(one);
    classes_ = static_cast<std::int64_t>(classes.size());
    if (images_.empty()) throw taas::InvalidArgument(folder.string() + " has no folders of images");
  }
  [[nodiscard]] std::int64_t classes() const { return classes_; }
  [[nodiscard]] std::size_t size() const override { return images_.size(); }

  /// The image (3, size, size), normalised as torchvision's models want it, and its class ().
  taas::Tensors get(std::size_t index) override {
    const auto& [path, label] = images_[index];
    int width = 0, height = 0, channels = 0;
    constexpr int kChannels = 3;
    const std::unique_ptr<stbi_uc, void (*)(void*)> bytes(
        stbi_load(path.c_str(), &width, &height, &channels, kChannels), stbi_image_free);
    if (!bytes) throw taas::InvalidArgument(path.string() + ": " + stbi_failure_reason());
    const auto pixels = at::from_blob(bytes.get(), {height, width, kChannels}, at::kByte);
    return {normalised(middle_of(pixels.permute({2, 0, 1}).contiguous().to(at::kFloat).div(255))),
            at::scalar_tensor(label, at::kLong)};
  }

 private:
  void add_class(const fs::path& folder) {
    std::vector<std::pair<fs::path, fs::path>> found;  // folder and name
    for (const auto& entry : fs::recursive_directory_iterator(folder)) {
      const auto kind = entry.path().extension();
      if (kind == ".png" || kind == ".jpg" || kind == ".jpeg") {
        found.emplace_back(entry.path().parent_path(), entry.path().filename());
      }
    }
    std::sort(found.begin(), found.end());
    for (const auto& [place, name] : found) images_.emplace_back(place / name, classes_);
    ++classes_;
  }

  /// The shorter side becomes 8/7 of the size (256 for 224), and the middle is cut out.
  [[nodiscard]] at::Tensor middle_of(at::Tensor image) const {
    const auto wanted = size_ * 8 / 7;
    const auto height = image.size(1), width = image.size(2);
    const auto shorter = std::min(height, width);
    if (shorter != wanted) {
      image =
          at::_upsample_bilinear2d_aa(image.unsqueeze(0), {wanted * height / shorter, wanted * width / shorter}, false)
              .squeeze(0);
    }
    const auto before = [this](std::int64_t side) {
      return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(side - size_) / 2));
    };
    return image.narrow(1, before(image.size(1)), size_).narrow(2, before(image.size(2)), size_);
  }

  static at::Tensor normalised(const at::Tensor& image) {
    const auto mean = at::tensor({0.485F, 0.456F, 0.406F}).view({3, 1, 1});
    const auto deviation = at::tensor({0.229F, 0.224F, 0.225F}).view({3, 1, 1});
    return image.sub(mean).div(deviation);
  }

  std::int64_t size_;
  std::int64_t classes_ = 0;
  std::vector<std::pair<fs::path, std::int64_t>> images_;  // path and class
};

nn::Conv2d convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

/// Members are made in the order in which torchvision makes them, so that the same seed gives the same weights.
struct BasicBlockImpl : nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride, nn::Sequential shortcut)
      : conv1(register_module("conv1", convolution(in, out, 3, stride))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        conv2(register_module("conv2", convolution(out, out, 3, 1))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {
    if (shortcut) downsample = register_module("downsample", std::move(shortcut));
  }
  at::Tensor forward(const at::Tensor& x) {
    const auto y = bn2(conv2(at::relu(bn1(conv1(x)))));
    return at::relu(y + (downsample ? downsample->forward(x) : x));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential downsample = nullptr;
};
TORCH_MODULE(BasicBlock);

/// ResNet-18 (He and others 2015, arXiv:1512.03385) with the names of torchvision's, whose files it can read.
struct ResNetImpl : nn::Module {
  explicit ResNetImpl(std::int64_t classes)
      : conv1(register_module("conv1", convolution(3, 64, 7, 2))), bn1(register_module("bn1", nn::BatchNorm2d(64))) {
    std::int64_t in = 64;
    for (const std::int64_t out : {64, 128, 256, 512}) {
      layers.push_back(register_module("layer" + std::to_string(layers.size() + 1), layer(in, out)));
      in = out;
    }
    fc = register_module("fc", nn::Linear(in, classes));
    for (const auto& module : modules(/*include_self=*/false)) {
      if (auto* one = module->as<nn::Conv2d>()) nn::init::kaiming_normal_(one->weight, 0, torch::kFanOut, torch::kReLU);
    }
  }
  at::Tensor forward(at::Tensor x) {
    x = at::relu(bn1(conv1(x)));
    x = nn::functional::max_pool2d(x, nn::functional::MaxPool2dFuncOptions(3).stride(2).padding(1));
    for (auto& each : layers) x = each->forward(x);
    return fc(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1));
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  std::vector<nn::Sequential> layers;
  nn::Linear fc = nullptr;

 private:
  static nn::Sequential layer(std::int64_t in, std::int64_t out) {
    const std::int64_t stride = in == out ? 1 : 2;
    nn::Sequential shortcut = nullptr;
    if (in != out) shortcut = nn::Sequential(convolution(in, out, 1, stride), nn::BatchNorm2d(out));
    BasicBlock first(in, out, stride, std::move(shortcut));
    return nn::Sequential(std::move(first), BasicBlock(out, out, 1, nullptr));
  }
};
TORCH_MODULE(ResNet);

/// Half of the images, mirrored. Drawn by the rank itself, out of the generator that a checkpoint has.
at::Tensor some_mirrored(const at::Tensor& images) {
  const auto chosen = (at::rand({images.size(0)}) < 0.5).view({-1, 1, 1, 1}).to(images.device());
  return at::where(chosen, images.flip({3}), images);
}

/// Which part of the images of all ranks is told right.
double accuracy_of(ResNet& network, const taas::ProcessGroup& group, taas::Batches images) {
  const at::NoGradGuard no_grad;
  network->eval();
  auto counts = at::zeros({2}, at::TensorOptions(at::kLong).device(group.device()));  // right, all
  for (const auto& batch : images) {
    const auto labels = batch[1].to(group.device());
    counts[0] += (network(batch[0].to(group.device())).argmax(1) == labels).sum();
    counts[1] += labels.size(0);
  }
  network->train();
  taas::all_reduce(group, counts);
  return counts[0].item<double>() / counts[1].item<double>();
}

void train(const fs::path& folder, const std::string& path, std::int64_t epochs, std::int64_t size) {
  const auto images = std::make_shared<ImageFolder>(folder / "train", size);
  const auto held_out = std::make_shared<ImageFolder>(folder / "val", size);
  taas::DataLoader train_loader("train", images, {.batch_size = kBatch, .pin_memory = true});
  taas::DataLoader val_loader("val", held_out, {.batch_size = kBatch, .pin_memory = true});
  if (taas::serve_data({train_loader, val_loader})) return;  // data-workers.md

  const auto group = taas::init();  // cpp/ddp.md, "Process groups in C++"
  const auto rank = static_cast<std::size_t>(group.rank()), ranks = static_cast<std::size_t>(group.world_size());
  at::manual_seed(1);
  ResNet network(images->classes());
  network->to(group.device());
  at::manual_seed(100 + rank);                                                             // of mirroring
  taas::DistributedDataParallel model(network, group, {.gradient_as_bucket_view = true});  // cpp/ddp.md
  taas::SGD optimizer(network->parameters(), torch::optim::SGDOptions(kRate).momentum(kMomentum).weight_decay(kDecay));
  taas::LRScheduler schedule(optimizer, taas::StepLR{.step_size = kEpochsOfRate, .gamma = kFactor});  // cpp/tools.md
  taas::DistributedSampler sampler(images->size(), {.num_replicas = ranks, .rank = rank});
  taas::DistributedSampler val_sampler(held_out->size(), {.num_replicas = ranks, .rank = rank, .shuffle = false});

  std::int64_t epoch = 0;
  if (fs::exists(path)) {  // cpp/training.md, "Checkpoints of Python"
    auto checkpoint = taas::load_checkpoint(path);
    taas::load_state_dict(*network, checkpoint.model);
    taas::load_state_dict(optimizer, std::move(checkpoint.optimizer));
    schedule.load_state(checkpoint.extra.at("schedule"));
    taas::load_random_state(group, checkpoint.random);  // cpp/tools.md, "Random numbers"
    epoch = checkpoint.epoch;
  }
  for (const auto end = epoch + epochs; epoch < end; ++epoch) {
    sampler.set_epoch(static_cast<std::uint64_t>(epoch));
    at::Tensor loss;
    for (const auto& batch : train_loader.batches(sampler)) {
      model.zero_grad();
      const auto scores = model(some_mirrored(batch[0].to(group.device(), at::kFloat, /*non_blocking=*/true)));
      loss = nn::functional::cross_entropy(scores, batch[1].to(group.device()));
      model.backward(loss);
      optimizer.step();
    }
    schedule.step();
    taas::save_checkpoint(group, path,
                          {.epoch = epoch + 1,
                           .model = taas::state_dict(*network),
                           .optimizer = taas::state_dict(optimizer, schedule),
                           .extra = {{"schedule", schedule.state()}}});
    const auto accuracy = accuracy_of(network, group, val_loader.batches(val_sampler));
    if (rank == 0) {
      std::cout << "epoch " << epoch + 1 << ": loss " << loss.item<double>() << ", " << accuracy << " right"
                << std::endl;
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4 && argc != 5) {
    std::cerr << "usage: resnet FOLDER CHECKPOINT EPOCHS [SIDE OF THE IMAGES]\n";
    return 2;
  }
  train(argv[1], argv[2], std::stoll(argv[3]), argc == 5 ? std::stoll(argv[4]) : kUsualSize);
} catch (const std::exception& error) {
  std::cerr << "resnet: " << error.what() << '\n';
  return 1;
}
