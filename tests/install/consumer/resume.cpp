// A checkpoint in the middle of an epoch, with model, optimizer, schedule and sampler: a run that goes on from it ends
// with the same bits as one that was never stopped.
#include <torch/torch.h>

#include <taas/taas.hpp>

void require(bool condition, const std::string& what) {
  if (!condition) throw std::runtime_error(what);
}

// A sampler writes to an archive, a checkpoint takes tensors: the archive's bytes.
at::Tensor state_of(const taas::DistributedSampler& sampler) {
  torch::serialize::OutputArchive archive;
  sampler.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  const auto text = stream.str();
  return torch::tensor(std::vector<std::uint8_t>(text.begin(), text.end()));
}

void load_state_of(taas::DistributedSampler& sampler, const at::Tensor& bytes) {
  torch::serialize::InputArchive archive;
  archive.load_from(static_cast<const char*>(bytes.const_data_ptr()), bytes.numel());
  sampler.load(archive);
}

struct Training {
  explicit Training(const taas::ProcessGroup& the_group) : group(the_group) {}
  taas::ProcessGroup group;
  torch::nn::Sequential network{torch::nn::Linear(6, 12), torch::nn::Tanh(), torch::nn::Linear(12, 1)};
  taas::DistributedDataParallel<torch::nn::SequentialImpl> model{network, group};
  taas::Adam optimizer{network->parameters(), torch::optim::AdamOptions(1e-2)};
  taas::LRScheduler schedule{optimizer, taas::StepLR{.step_size = 4, .gamma = 0.8}};
  taas::DistributedSampler sampler{
      52, {.num_replicas = std::size_t(group.world_size()), .rank = std::size_t(group.rank()), .seed = 9}};

  // To the end of the training, or so many steps.
  void run(int steps = 1000) {
    while (sampler.epoch() < 3) {
      while (const auto batch = sampler.next(4)) {
        const auto numbers = torch::tensor(std::vector<float>(batch->begin(), batch->end())).unsqueeze(1);
        model.zero_grad();
        model.backward((model(at::sin(numbers * torch::arange(1, 7))) - numbers).square().mean());
        optimizer.step();
        schedule.step();
        if (--steps == 0) return;
      }
      sampler.set_epoch(sampler.epoch() + 1);
      sampler.reset();
    }
  }
};

int main() {
  const auto group = taas::init();
  torch::manual_seed(6);
  Training whole(group), first_part(group), second_part(group);
  taas::load_module_state(first_part.model, taas::module_state(whole.model));
  whole.run();
  first_part.run(9);

  const char* folder = std::getenv("TAAS_OUTPUT_DIR");
  const auto path = std::string(folder ? folder : ".") + "/resume.pt";
  if (group.rank() == 0) {
    taas::save_checkpoint(
        path, {.epoch = std::int64_t(first_part.sampler.epoch()),
               .model = taas::module_state(first_part.model),
               .optimizer = taas::optimizer_state(first_part.optimizer),
               .extra = {{"schedule", first_part.schedule.state()}, {"sampler", state_of(first_part.sampler)}}});
  }
  taas::barrier(group);
  const auto checkpoint = taas::load_checkpoint(path);
  taas::load_module_state(second_part.model, checkpoint.model);
  taas::load_optimizer_state(second_part.optimizer, checkpoint.optimizer);
  second_part.schedule.load_state(checkpoint.extra.at("schedule"));
  load_state_of(second_part.sampler, checkpoint.extra.at("sampler").toTensor());
  second_part.run();

  const auto expected = whole.network->parameters(), ours = second_part.network->parameters();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    require(ours[i].equal(expected[i]), "parameter " + std::to_string(i) + " differs from that of the whole training");
  }
  const auto rate = second_part.schedule.last_lr()[0];
  require(rate == whole.schedule.last_lr()[0], "the rates differ");
  if (group.rank() == 0) std::cout << "ok resume: epoch " << checkpoint.epoch << " of 3, rate " << rate << std::endl;
}
