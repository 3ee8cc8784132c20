#pragma once

#include <ATen/Functions.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "taas/checkpoint.hpp"
#include "taas/data.hpp"

namespace taas::test {

inline std::int64_t digest_of(const DataLoader& loader) { return loader.state().toGenericDict().at("digest").toInt(); }

inline std::vector<Tensors> rest(Batches& loop) {
  std::vector<Tensors> all;
  for (auto& batch : loop) all.push_back(batch);
  return all;
}

/// A loop from its beginning to its end.
inline std::vector<Tensors> epoch(DataLoader loader, torch::data::samplers::Sampler<>& sampler) {
  auto loop = loader.batches(sampler);
  return rest(loop);
}
inline std::vector<Tensors> epoch(DataLoader loader) {
  auto loop = loader.batches();
  return rest(loop);
}

inline bool equal(const std::vector<Tensors>& one, const std::vector<Tensors>& other) {
  auto same = [](const at::Tensor& a, const at::Tensor& b) { return a.dtype() == b.dtype() && at::equal(a, b); };
  return one.size() == other.size() &&
         std::equal(one.begin(), one.end(), other.begin(), [&](const auto& a, const auto& b) {
           return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), same);
         });
}

inline c10::IValue through_checkpoint(const c10::IValue& state) {
  auto path = std::filesystem::temp_directory_path() / ("taas-data-test-" + std::to_string(::getpid()) + ".pt");
  save_checkpoint(path, {.extra = {{"data", state}}});
  auto read = load_checkpoint(path).extra.at("data");
  std::filesystem::remove(path);
  return read;
}

/// How many examples were read, by this process and by data workers.
class Gets {
 public:
  Gets() { ::setenv("TAAS_TEST_GETS", path_.c_str(), 1); }
  Gets(const Gets&) = delete;
  Gets& operator=(const Gets&) = delete;
  ~Gets() {
    ::unsetenv("TAAS_TEST_GETS");
    std::filesystem::remove(path_);
  }
  [[nodiscard]] int count() const {
    return std::filesystem::exists(path_) ? static_cast<int>(std::filesystem::file_size(path_)) : 0;
  }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / ("taas-gets-" + std::to_string(::getpid()))).string();
};

/// This process is the rank, as long as this lives.
struct AsRank {
  AsRank(int rank, int world_size) {
    ::setenv("RANK", std::to_string(rank).c_str(), 1);
    ::setenv("WORLD_SIZE", std::to_string(world_size).c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    ::setenv("MASTER_PORT", "1", 1);
  }
  AsRank(const AsRank&) = delete;
  AsRank& operator=(const AsRank&) = delete;
  ~AsRank() {
    for (const auto* name : {"RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"}) ::unsetenv(name);
  }
};

}  // namespace taas::test
