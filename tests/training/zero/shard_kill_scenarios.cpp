// A rank that is killed at some moment of a save of shards.
#include <csignal>
#include <cstdlib>
#include <iostream>
#include <random>
#include <set>
#include <thread>

#include "rank_scenarios.hpp"
#include "shard_file_models.hpp"
#include "taas/error.hpp"

namespace taas::test {
namespace {

namespace fs = std::filesystem;

/// What can be seen of a save from outside, in its order.
enum class SaveMoment { kJournal, kShardBegun, kShardWritten, kManifestBegun, kManifestPublished };
constexpr int kMoments = 5;

/// Files that begin with `name`, and what else a moment is told by, are polled: an iterator may meet a file that goes.
bool has_entry(const fs::path& folder, const std::string& name) {
  std::error_code gone;
  for (fs::directory_iterator entry(folder, gone), end; !gone && entry != end; entry.increment(gone)) {
    if (entry->path().filename().string().starts_with(name)) return true;
  }
  return false;
}

std::set<std::string> sets_of_shards(const fs::path& directory) {
  std::set<std::string> names;
  std::error_code gone;
  for (fs::directory_iterator entry(directory, gone), end; !gone && entry != end; entry.increment(gone)) {
    if (entry->is_directory(gone)) names.insert(entry->path().filename());
  }
  return names;
}

/// Kills this process when its next save has come to a moment.
class KillAt {
 public:
  KillAt(const FilledModel& model, SaveMoment moment, int spins)
      : directory_(model.directory),
        shard_("shard-" + std::to_string(model.group.rank()) + "-of-" + std::to_string(model.group.world_size()) +
               ".pt"),
        moment_(moment),
        spins_(spins),
        sets_(sets_of_shards(directory_)),
        manifest_(content_of(directory_ / "manifest.pt")) {}

  void operator()() const {
    while (!has_come()) std::this_thread::yield();
    for (int i = 0; i < spins_; ++i) std::this_thread::yield();
    ::raise(SIGKILL);
  }

 private:
  [[nodiscard]] bool has_come() const {
    switch (moment_) {
      case SaveMoment::kJournal:
        return has_entry(directory_, "saving.pt");
      case SaveMoment::kShardBegun:
        return in_new_set(shard_ + ".tmp-");
      case SaveMoment::kShardWritten:
        return in_new_set(shard_);
      case SaveMoment::kManifestBegun:
        return has_entry(directory_, "manifest.pt.tmp-");
      case SaveMoment::kManifestPublished:
        return content_of(directory_ / "manifest.pt") != manifest_;
    }
    return false;
  }
  [[nodiscard]] bool in_new_set(const std::string& name) const {
    for (const auto& set : sets_of_shards(directory_)) {
      if (!sets_.contains(set) && has_entry(directory_ / set, name)) return true;
    }
    return false;
  }

  fs::path directory_;
  std::string shard_;
  SaveMoment moment_;
  int spins_;
  std::set<std::string> sets_;
  std::string manifest_;
};

/// Finds the last good save, makes some whole ones, and is killed in the next. Rank 0 tells the epochs.
void killed_in_shards() {
  const int number = std::atoi(content_of(shard_files_folder(::getppid()) / "kill").c_str());
  FilledModel model(init({.backend = Backend::kGloo}), 4001);
  std::int64_t epoch = fs::exists(model.directory / "manifest.pt") ? model.load() : 0;
  const auto tell = [&] {
    if (model.group.rank() == 0) std::cout << epoch << std::endl;
  };
  tell();
  const int whole = number % 3, victim = number % 2 == 0 ? 0 : model.group.world_size() - 1;
  std::minstd_rand random(static_cast<unsigned>(number));
  const int spins = number % 4 == 0 ? 0 : static_cast<int>(random() % 200);
  const auto save = [&] {
    model.fill(++epoch);
    model.save(epoch);
    tell();
  };
  for (int i = 0; i < whole; ++i) save();
  if (model.group.rank() == victim) {
    std::thread(KillAt(model, static_cast<SaveMoment>(number / 2 % kMoments), spins)).detach();
  }
  text_of<CommunicationError>([&] {
    for (;;) save();
  });
}

void shards_after_kills() {
  FilledModel model(init({.backend = Backend::kGloo}), 4001);
  const auto epoch = model.load() + 1;
  model.fill(epoch);
  model.save(epoch);
  model.expect_one_save();
}

}  // namespace

std::map<std::string, Scenario> shard_kill_scenarios() {
  return {{"killed_in_shards", killed_in_shards}, {"shards_after_kills", shards_after_kills}};
}

}  // namespace taas::test
