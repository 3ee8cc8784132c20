#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "run/looks/rank_look.hpp"

namespace taas::run {

/// What `taas-run look` shows of one rank.
struct RankReport {
  Rank rank;
  std::string node;                    ///< its host's name; empty: there is only one
  int pid = 0;                         ///< there
  std::string activity;                ///< "busy", "waits", "blocked", "purposely"; empty: it could not be looked at
  std::string doing;                   ///< as in RankStanding
  std::string place;                   ///< as in RankStanding
  std::vector<SeenFrame> own_frames;   ///< innermost first
  std::string phase;                   ///< as phase_of() has it; empty: it could not be looked at
  std::string line;                    ///< "train.py:88"; empty: no line of the user's is known
  double cpu = 0;                      ///< processors that its processes use, or wait for
  std::uint64_t memory_bytes = 0;      ///< as in RankLook
  std::uint64_t steps = 0;             ///< as in RankLook
  double steps_per_s = 0;              ///< lately; 0 where there has been none for much longer than usual
  double since_step_s = -1;            ///< since the last one; negative: none was counted
  double data_wait = -1;               ///< share of its loops' time that it had no batch; negative: not known
  int gpu_percent = -1;                ///< as in RankLook
  std::uint64_t gpu_bytes = 0;         ///< as in RankLook
  double still_s = 0;                  ///< since its main thread hardly ran; 0: it does
  std::vector<SeenProcess> processes;  ///< only where one rank was asked for
};

/// What a run is at.
struct LookReport {
  std::string run;
  std::string folder;
  std::string state;   ///< "moves", "stuck", "waiting", or, without ranks that live, "idle"
  double since_s = 0;  ///< nothing has moved, where it is stuck
  std::string text;    ///< who waits for whom, in one line; empty: nobody, as far as can be seen
  int generation = 0;
  int world_size = 0;
  int nodes = 1;
  std::vector<Rank> culprits;
  std::vector<Rank> ended_well;
  std::vector<std::string> silent;  ///< hosts that did not answer in time
  std::vector<RankReport> ranks;
};

// clang-format off
BOOST_DESCRIBE_STRUCT(RankReport, (), (rank, node, pid, activity, doing, place, own_frames, phase, line, cpu, memory_bytes,
                                     steps, steps_per_s, since_step_s, data_wait, gpu_percent, gpu_bytes, still_s, processes))
BOOST_DESCRIBE_STRUCT(LookReport, (), (run, folder, state, since_s, text, generation, world_size, nodes, culprits, ended_well, silent, ranks))
// clang-format on

}  // namespace taas::run
