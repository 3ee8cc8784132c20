#pragma once

#include <string>
#include <vector>

namespace taas::test {

enum class Meeting {
  kServed,    ///< this process serves the store, as a launcher does
  kRankZero,  ///< rank 0 does
  kNowhere,   ///< MASTER_PORT is closed
};

struct SpawnOptions {
  int world_size = 1;
  Meeting meeting = Meeting::kServed;
  bool on_gpu = false;     ///< scenarios that work on either device (join_as_asked) do it on a GPU, over nccl
  bool share_gpu = false;  ///< nccl takes each rank for a host of its own, so that several may have one GPU
};

struct RankResult {
  int exit_code = -1;  ///< 128 + signal after one
  std::string output;
};

/// Runs `program argument` once for each rank, on this machine, and waits for all. The ranks die with this process.
std::vector<RankResult> spawn_ranks(const std::string& program, const std::string& argument,
                                    const SpawnOptions& options);

/// What the ranks printed, and the exit codes that are not 0; empty when all went well.
std::string problems(const std::vector<RankResult>& results);

}  // namespace taas::test
