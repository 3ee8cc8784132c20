#include "run/coordinator/silent_mistakes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "run/events/words.hpp"

namespace taas::run {
namespace {

std::string_view way_to_a_group(std::string_view framework) {
  if (framework == "accelerate") {
    return "call PartialState(cpu=True) or Accelerator(cpu=True) before anything else of accelerate, where ranks are "
           "on "
           "the CPU";
  }
  if (framework == "lightning") {
    return "give Trainer or Fabric devices=int(os.environ[\"LOCAL_WORLD_SIZE\"]) and "
           "num_nodes=int(os.environ[\"GROUP_WORLD_SIZE\"])";
  }
  return "call torch.distributed.init_process_group() and wrap the model in DistributedDataParallel";
}

bool share_a_gpu(const TrainingFacts& one, const TrainingFacts& other) {
  return one.visible_gpus == other.visible_gpus && std::ranges::any_of(one.data_parallel_gpus, [&](int gpu) {
           return std::ranges::count(other.data_parallel_gpus, gpu) > 0;
         });
}

/// Ranks that take turns, such as one that saves because it has the best result, do neither.
bool clash(const SaveTime& one, const SaveTime& other) {
  bool overlap = one.began < other.ended && other.began < one.ended;
  return overlap || (one.step > 0 && one.step == other.step);
}

bool clash(const SavedFile& one, const SavedFile& other) {
  bool same = one.path == other.path && one.device == other.device && one.inode == other.inode;
  return same && std::ranges::any_of(one.times, [&](const SaveTime& time) {
           return std::ranges::any_of(other.times, [&](const SaveTime& theirs) { return clash(time, theirs); });
         });
}

bool saved_as_well(const TrainingFacts& facts, const SavedFile& file) {
  return std::ranges::any_of(facts.saved, [&](const SavedFile& theirs) { return clash(file, theirs); });
}

bool had(const TrainingFacts& facts, const ShuffledOrder& order) {
  return std::ranges::any_of(facts.shuffled, [&](const ShuffledOrder& theirs) {
    return theirs.loader == order.loader && theirs.digest == order.digest;
  });
}

}  // namespace

void SilentMistakes::see(const Event& event) {
  if (const auto* gathered = std::get_if<NodesGathered>(&event)) {
    *this = {};
    node_of_rank_ = gathered->node_of_rank;
    node_names_ = gathered->node_names;
  }
  if (std::holds_alternative<StoreReached>(event)) store_reached_ = true;
  if (const auto* exited = std::get_if<RankExited>(&event)) ended_well_ += exited->status.success() ? 1 : 0;
}

std::vector<std::string> SilentMistakes::lines() const {
  std::vector<std::string> found;
  if (auto line = without_group()) found.push_back(std::move(*line));
  if (auto line = same_samples()) found.push_back(std::move(*line));
  const auto nodes = by_node();
  for (auto rule : {&SilentMistakes::data_parallel, &SilentMistakes::one_gpu, &SilentMistakes::same_file}) {
    for (const auto& node : nodes) {
      auto line = (this->*rule)(node);
      if (!line) continue;
      found.push_back(std::move(*line));
      break;
    }
  }
  return found;
}

std::vector<std::vector<SilentMistakes::Told>> SilentMistakes::by_node() const {
  std::map<NodeIndex, std::vector<Told>> nodes;
  for (const auto& [rank, facts] : facts_) {
    auto index = static_cast<std::size_t>(rank.value);
    if (rank.value >= 0 && index < node_of_rank_.size()) nodes[node_of_rank_[index]].push_back({rank, &facts});
  }
  std::vector<std::vector<Told>> groups;
  for (auto& [node, ranks] : nodes) groups.push_back(std::move(ranks));
  return groups;
}

std::string SilentMistakes::name(const std::vector<Rank>& ranks) const {
  return name_ranks(ranks, node_of_rank_, node_names_);
}

SilentMistakes::Found SilentMistakes::without_group() const {
  const auto world_size = node_of_rank_.size();
  bool all = world_size > 1 && facts_.size() == world_size && ended_well_ == world_size &&
             std::ranges::all_of(facts_, [](const auto& told) { return told.second.trained; });
  if (!all) return std::nullopt;
  const auto& framework = facts_.begin()->second.framework;
  bool counted_one = std::ranges::all_of(facts_, [](const auto& told) { return told.second.counted_one; });
  bool joined = std::ranges::any_of(facts_, [](const auto& told) { return told.second.joined; });
  if (!counted_one && (store_reached_ || joined)) return std::nullopt;
  return fmt::format(
      "{} ranks trained {}, each on its own: to train one model together, {} (TAAS_HINTS=0 if each is to train its "
      "own)",
      world_size, counted_one ? "as if there were no others" : "without a process group", way_to_a_group(framework));
}

SilentMistakes::Found SilentMistakes::same_samples() const {
  for (const auto& [first, facts] : facts_) {
    for (const auto& order : facts.shuffled) {
      std::vector<Rank> ranks;
      for (const auto& [rank, theirs] : facts_) {
        if (had(theirs, order)) ranks.push_back(rank);
      }
      if (ranks.size() < 2) continue;
      return fmt::format(
          "{} had the same samples of {} in the same order, so that each did the same work: "
          "taas.register(loader, shared=True), or --split, deals one stream over all ranks",
          name(ranks), order.loader);
    }
  }
  return std::nullopt;
}

SilentMistakes::Found SilentMistakes::data_parallel(const std::vector<Told>& node) const {
  for (const auto& first : node) {
    std::vector<Rank> ranks;
    for (const auto& told : node) {
      if (share_a_gpu(*first.facts, *told.facts)) ranks.push_back(told.rank);
    }
    if (ranks.size() < 2) continue;
    return fmt::format(
        "{} each used nn.DataParallel on the same GPUs: wrap the model in "
        "DistributedDataParallel(model, device_ids=[local_rank]) instead, or start one rank",
        name(ranks));
  }
  return std::nullopt;
}

/// All ranks of the node, and a GPU for each of them: what else they could have meant is hard to say.
SilentMistakes::Found SilentMistakes::one_gpu(const std::vector<Told>& node) const {
  const auto node_index = node_of_rank_[static_cast<std::size_t>(node.front().rank.value)];
  const auto here = std::ranges::count(node_of_rank_, node_index);
  if (here < 2 || static_cast<std::ptrdiff_t>(node.size()) != here) return std::nullopt;
  std::vector<Rank> ranks;
  for (const auto& told : node) {
    const auto& facts = *told.facts;
    bool first_only = facts.trained && facts.gpus >= here && facts.gpus_used == std::vector<int>{0};
    if (!first_only || facts.visible_gpus != node.front().facts->visible_gpus) return std::nullopt;
    ranks.push_back(told.rank);
  }
  return fmt::format(
      "{} all used GPU 0, and none of the other {}: call torch.cuda.set_device(int(os.environ[\"LOCAL_RANK\"])) before "
      "anything is put on a GPU, or start taas-run with --virtual-local-rank",
      name(ranks), node.front().facts->gpus - 1);
}

SilentMistakes::Found SilentMistakes::same_file(const std::vector<Told>& node) const {
  for (const auto& first : node) {
    for (const auto& file : first.facts->saved) {
      std::vector<Rank> ranks{first.rank};
      for (const auto& told : node) {
        if (told.rank != first.rank && saved_as_well(*told.facts, file)) ranks.push_back(told.rank);
      }
      if (ranks.size() < 2) continue;
      std::ranges::sort(ranks);
      return fmt::format(
          "{} saved to the same file, {}: save in rank 0 only, or put the rank into the name of the file", name(ranks),
          file.path);
    }
  }
  return std::nullopt;
}

}  // namespace taas::run
