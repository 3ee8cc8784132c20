// Saves of shards that fail or are cut off, and shards that are not what the manifest says.
#include <ATen/ATen.h>
#include <sys/resource.h>

#include <csignal>
#include <optional>

#include "rank_scenarios.hpp"
#include "shard_file_models.hpp"
#include "taas/collectives.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

namespace fs = std::filesystem;
using torch::optim::AdamWOptions;

/// As on a full disk: no file of this process can grow beyond so many bytes.
void limit_files(rlim_t bytes) {
  std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = bytes;
  ::setrlimit(RLIMIT_FSIZE, &limit);
}

void lift_limit_of_files() {
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  limit_files(limit.rlim_max);
}

/// `file`, of rank `bad`, is larger than can be written.
void expect_failed_write(FilledModel& model, std::int64_t epoch, int bad, rlim_t limit, const std::string& file) {
  model.fill(epoch);
  if (model.group.rank() == bad) limit_files(limit);
  const auto text = text_of<CheckpointError>([&] { model.save(epoch); });
  if (model.group.rank() == bad) lift_limit_of_files();
  expect(text.starts_with("rank " + std::to_string(bad) + ": cannot write " + model.directory.string()) &&
             contains(text, file + ": File too large") && !contains(text, "\n"),
         text);
  model.expect_filled(epoch);
  model.expect_one_save();
}

void shard_write_fails() {
  FilledModel model(init({.backend = Backend::kGloo}));
  model.fill(1);
  model.save(1);
  const int last = model.group.world_size() - 1;
  constexpr rlim_t kNothing = 64, kJournal = 2048, kShard = 100'000;
  expect_failed_write(model, 2, 0, kNothing, "/saving.pt");
  expect_failed_write(model, 3, 0, kJournal, "/shard-0-of-3.pt");
  expect_failed_write(model, 4, last, kNothing, "/shard-2-of-3.pt");
  expect_failed_write(model, 5, 0, kShard, "/checkpoint.pt");
  expect(model.load() == 1, "the former save is not the good one");
  model.fill(6);
  model.save(6);
  model.expect_one_save();
  expect(model.load() == 6, "a save after one that failed");
  const auto file = (model.directory / "manifest.pt").string();
  const auto folder = text_of<CheckpointError>([&] { model.optimizer.save_shards(file); });
  expect(contains(folder, "rank 0: cannot make the folder " + file), folder);
  const auto twice = text_of<CheckpointError>(
      [&] { model.optimizer.save_shards(model.directory.string(), {.optimizer = c10::IValue(1)}); });
  expect(contains(twice, "leave it out"), twice);
  expect(model.load() == 6, "saves that were refused");
}

void shards_that_do_not_fit() {
  FilledModel model(init({.backend = Backend::kGloo}));
  const auto missing = text_of<CheckpointError>([&] { model.load(); });
  expect(contains(missing, "rank 0: cannot read " + (model.directory / "manifest.pt").string()), missing);
  model.fill(1);
  model.save(1);
  const auto other_save = content_of(model.shard(1));
  barrier(model.group);
  model.fill(2);
  model.save(2);
  model.fill(3);
  const auto file = model.shard(1), manifest = model.directory / "manifest.pt";
  const auto whole = content_of(file), good_manifest = content_of(manifest);
  const auto refused = [&](const fs::path& path, const std::optional<std::string>& bytes, const std::string& what) {
    barrier(model.group);
    const auto before = content_of(path);
    barrier(model.group);
    if (model.group.rank() == 0) bytes ? write_content(path, *bytes) : void(fs::remove(path));
    barrier(model.group);
    const auto text = text_of<CheckpointError>([&] { model.load(); });
    expect(contains(text, path.string()) && contains(text, what) && !contains(text, "\n"), text);
    model.expect_filled(3);
    barrier(model.group);
    if (model.group.rank() == 0) write_content(path, before);
    barrier(model.group);
    return text;
  };
  refused(file, std::nullopt, "No such file");
  refused(file, whole.substr(0, whole.size() / 2), "it is cut off or of another save");
  const auto mixed = refused(file, other_save, "the files are mixed");
  expect(mixed.starts_with("rank 1: "), "a rank reads another one's shard: " + mixed);
  refused(file, whole.substr(0, whole.size() - 64) + std::string(64, '\0'), "cut off or damaged");
  refused(manifest, std::nullopt, "No such file");
  refused(manifest, good_manifest.substr(0, good_manifest.size() / 2), "cut off or damaged");
  refused(manifest, whole, "is not a \"taas shards\"");
  refused(model.set() / "checkpoint.pt", std::nullopt, "No such file");
  FilledModel wider(model.group, 138);
  const auto shape = text_of<CheckpointError>([&] { wider.load(); });
  expect(contains(shape, manifest.string() + ": parameter 0 is (137, 5) Float in the shards but (138, 5)"), shape);
  auto network = sharded_net();
  const auto parameters = network->parameters();
  ZeroOptimizer::Groups two;
  two.emplace_back(std::vector<at::Tensor>{parameters[0], parameters[1]});
  two.emplace_back(std::vector<at::Tensor>{parameters[2], parameters[3]});
  ZeroOptimizer other(two, model.group, AdamWOptions(0.01));
  const auto groups = text_of<CheckpointError>([&] { other.load_shards(model.directory.string()); });
  expect(contains(groups, manifest.string() + ": the checkpoint has 1 parameter groups but the optimizer 2"), groups);
  expect(model.load() == 2, "the good files");
}

}  // namespace

std::map<std::string, Scenario> shard_file_scenarios() {
  return {{"shard_write_fails", shard_write_fails}, {"shards_that_do_not_fit", shards_that_do_not_fit}};
}

}  // namespace taas::test
