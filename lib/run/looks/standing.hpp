#pragma once

#include <optional>
#include <string>
#include <vector>

#include "run/events/policy.hpp"
#include "run/looks/rank_look.hpp"

namespace taas::run {

/// What a rank does, by two looks at it some seconds apart.
enum class Activity {
  kBusy,      ///< computes, reads or writes, or gets on from line to line
  kWaits,     ///< for other ranks: it is in a collective, or in the store
  kBlocked,   ///< waits for something that no other rank gives: a lock, a pipe, a disk, a child
  kPurposely  ///< waits as programs do on purpose: sleeps, polls, in a debugger, for input
};

/// The same in words.
struct RankStanding {
  Rank rank;
  Activity activity = Activity::kBusy;
  std::string
      place;  ///< "all_reduce (train.py:88)": the call of the library's, if one is told apart, and the user's line
  std::string line;         ///< "train.py:88"; empty: no line of the user's is known
  std::string doing;        ///< "waits for a lock", "holds the GIL in C code, asleep", "is busy, writes 210 MB/s"
  bool transfers = false;   ///< waits for others, and data comes
  bool hard = false;        ///< blocked by something that programs do not wait for on purpose
  bool needs_data = false;  ///< waits for batches of data workers
  bool on_purpose = false;  ///< what it waits for waits on purpose
  std::vector<SeenFrame> own_frames = {};  ///< of the thread that matters, innermost first
};

RankStanding judge(const RankLook& before, const RankLook& now);

/// A data worker by two looks, while it runs the user's code; nothing while it does not.
struct WorkerStanding {
  std::string text;      ///< "data worker 3 (host b) waits for a lock or another thread at data.py:41"
  bool blocked = false;  ///< by something that programs do not wait for on purpose
};
std::optional<WorkerStanding> judge_data_worker(const RankLook& before, const RankLook& now);

/// Says of each rank that waits for its data which data worker keeps it waiting, if one is seen to: the blocked first.
void explain_wait_for_data(std::vector<RankStanding>& ranks, const std::vector<WorkerStanding>& workers);

/// What all of a generation's ranks are at, together.
struct Standing {
  enum class Kind {
    kMoves,
    kStuck,    ///< nothing moves, and nothing will by itself as far as can be seen
    kWaiting,  ///< some wait for others, which are busy or wait on purpose
  };
  Kind kind = Kind::kMoves;
  std::vector<Rank> culprits;  ///< whom the others wait for; empty: not known
  std::vector<Rank> waiting;
  std::string who;   ///< "ranks 0, 1, 3"; empty: nobody waits for another rank
  std::string rest;  ///< " in all_reduce (train.py:88) for rank 2, which waits in queue.get in load (data.py:41)"
  std::string key;   ///< the same for what is the same finding: the culprits and their lines

  /// One line: "ranks 0, 1, 3 wait in …", or, with a time, "ranks 0, 1, 3 have waited 30 s in …".
  [[nodiscard]] std::string text(std::optional<Duration> waited = std::nullopt) const;
};

/// " in all_reduce (train.py:88)", " at train.py:88"; empty for no place.
std::string in_place(const std::string& place);

/// "45 s", "2 min 10 s", "3 h 5 min".
std::string in_words(Duration duration);

/// `ended_well`: ranks of the generation that have ended with 0. `joined`: some rank has joined a process group.
Standing assess(const std::vector<RankStanding>& ranks, const std::vector<Rank>& ended_well, bool joined,
                const Policy& policy);

/// "ranks 0-16, 18-31 (node 1)": as name_ranks(), with runs of numbers put together and nodes left out where many are.
std::string name_many(const std::vector<Rank>& ranks, const Policy& policy);

}  // namespace taas::run
