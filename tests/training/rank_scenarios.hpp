#pragma once

#include <functional>
#include <map>
#include <string>

namespace taas::test {

/// What one rank of a test does; run by dist_rank in processes started by spawn_ranks. A failure throws.
using Scenario = std::function<void()>;

std::map<std::string, Scenario> checkpoint_scenarios();
std::map<std::string, Scenario> collective_scenarios();
std::map<std::string, Scenario> data_parallel_scenarios();
std::map<std::string, Scenario> group_scenarios();
std::map<std::string, Scenario> hook_scenarios();
std::map<std::string, Scenario> loss_scenarios();
std::map<std::string, Scenario> zero_scenarios();
std::map<std::string, Scenario> scaled_scenarios();
std::map<std::string, Scenario> sums_scenarios();
std::map<std::string, Scenario> sync_batch_norm_scenarios();

/// Throws with `what` and this rank's number in the text.
void expect(bool good, const std::string& what);

/// Throws unless `call` throws an E; returns its text.
template <class E, class Call>
std::string text_of(Call&& call) {
  try {
    call();
  } catch (const E& error) {
    return error.what();
  }
  expect(false, "nothing was thrown");
  return "";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace taas::test
