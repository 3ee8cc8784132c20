#pragma once

#include <string>
#include <vector>

#include "run/looks/look_report.hpp"
#include "run/looks/rank_look.hpp"

namespace taas::run {

/// What a rank is about, in a word or two, by its frames: "importing torch", "joining", "training", "saving",
/// "evaluating", "loading data", "stopped"; "running" where that is all that can be told.
std::string phase_of(const RankLook& look, bool joined);

/// What most of the ranks are about.
struct RunPhase {
  std::string name;     ///< "importing torch"; empty: no rank is there
  std::string rest;     ///< " at train.py:88, 3.2 steps/s, rank 5 2.1": the slowest, where it is far slower
  bool passes = false;  ///< how long it has lasted is of interest: something is waited for
};

/// `ranks` have phase, place and steps.
RunPhase phase_of_run(const std::vector<RankReport>& ranks);

/// Steps of less than this share of the median are a straggler's.
inline constexpr double kStraggles = 0.8;

/// The median of the rates of those that count steps; 0: none does.
double usual_step_rate(const std::vector<RankReport>& ranks);

/// "3.2", "0.041", "1200".
std::string rate_in_words(double rate);

}  // namespace taas::run
