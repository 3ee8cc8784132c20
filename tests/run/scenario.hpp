#pragma once

#include <csignal>
#include <initializer_list>

#include "run/supervisor/supervisor.hpp"
#include "run/verdict/verdict.hpp"

namespace taas::run {

inline Instant at_ms(long milliseconds) {
  return Instant(std::chrono::seconds(100)) + std::chrono::milliseconds(milliseconds);
}

inline std::vector<Rank> ranks(std::initializer_list<int> numbers) {
  std::vector<Rank> result;
  for (int number : numbers) result.push_back(Rank{number});
  return result;
}

inline Policy policy_for(int world_size, int max_restarts = 0, int ranks_a_node = 100) {
  Policy policy;
  policy.world_size = world_size;
  policy.max_restarts = max_restarts;
  for (int rank = 0; rank < world_size; ++rank) policy.node_of_rank.push_back(NodeIndex{rank / ranks_a_node});
  return policy;
}

inline Evidence said(std::vector<std::string> lines, Instant first_error_at = {}) {
  Evidence evidence;
  evidence.last_lines = std::move(lines);
  evidence.first_error_at = first_error_at;
  return evidence;
}

inline Evidence raised(const std::string& exception, long milliseconds) {
  return said(
      {"Traceback (most recent call last):", "  File \"/home/u/train.py\", line 7, in step", "    work()", exception},
      at_ms(milliseconds));
}

inline Evidence lost_peer(long milliseconds) {
  return raised("RuntimeError: [pair.cc:561] Connection closed by peer [127.0.0.1]:24984.", milliseconds);
}

/// A generation of which all ranks live.
inline GenerationRecord all_living(int world_size) {
  GenerationRecord record(Generation{0}, world_size);
  for (int rank = 0; rank < world_size; ++rank) record.spawned({Generation{0}, Rank{rank}, 100 + rank, at_ms(0)});
  return record;
}

}  // namespace taas::run
