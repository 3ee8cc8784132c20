#pragma once

#include <string>
#include <vector>

#include "run/looks/standing.hpp"
#include "run/scenario.hpp"

// Looks at ranks, as tests make them up.
namespace taas::run::made {

inline const SeenFrame kUser{"step", "/home/me/train.py", 88};
inline const SeenFrame kMain{"<module>", "/home/me/train.py", 120};

inline std::vector<SeenFrame> in_library(const std::string& function, const std::string& file,
                                         const SeenFrame& user = kUser) {
  return {{function, "/venv/lib/python3.11/site-packages/torch/" + file, 7}, user, kMain};
}
inline std::vector<SeenFrame> in_all_reduce(const SeenFrame& user = kUser) {
  auto frames = in_library("wrapper", "distributed/c10d_logger.py", user);
  frames.insert(frames.begin(),
                {"all_reduce", "/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 9});
  return frames;
}

inline SeenThread thread(std::vector<SeenFrame> frames, Wait wait = Wait::kLock,
                         std::string waits_for = "a lock or another thread") {
  SeenThread seen;
  seen.tid = 1;
  seen.name = "python3";
  seen.wait = wait;
  seen.waits_for = wait == Wait::kNothing ? std::string() : std::move(waits_for);
  seen.frames = std::move(frames);
  return seen;
}

inline RankLook look(int rank, SeenThread main) {
  RankLook seen;
  seen.rank = Rank{rank};
  seen.at = at_ms(0);
  SeenProcess process;
  process.pid = 100 + rank;
  process.threads.push_back(std::move(main));
  seen.processes.push_back(std::move(process));
  return seen;
}

/// The same five seconds later, with so much done each second.
inline RankLook later(RankLook seen, double share = 0, double bytes = 0, double switches = 0) {
  seen.at += std::chrono::seconds(5);
  seen.cpu_ns += static_cast<std::uint64_t>(share * 5e9);
  seen.io_bytes += static_cast<std::uint64_t>(bytes * 5);
  seen.switches += static_cast<std::uint64_t>(switches * 5);
  return seen;
}

inline RankStanding still(const RankLook& seen) { return judge(seen, later(seen)); }

}  // namespace taas::run::made
