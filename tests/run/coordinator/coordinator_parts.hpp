#pragma once

#include "run/coordinator_drive.hpp"
#include "run/events/type_name.hpp"

namespace taas::run {

/// What every part of the coordinator needs, and what the part under test has decided and reported.
struct Parts {
  explicit Parts(CoordinatorPolicy given = run::policy(2, 2, 2)) : policy(std::move(given)) { at(0); }

  void at(long when) { decisions.begin(at_ms(when)); }
  /// Agents 0..count-1 on hosts 0..count-1, prepared for ranks.
  void add(int count, const Strings& folders = {}) {
    for (int i = 0; i < count; ++i) {
      agents.add(AgentId{i}, hello(i));
      auto folder = folders.empty() ? "" : folders.at(static_cast<std::size_t>(i));
      agents.ready(AgentId{i}, {4711, {}, {}, folder});
    }
  }
  Strings decided() {
    Strings all;
    for (const auto& action : decisions.take()) {
      if (auto text = brief(action); !text.empty()) all.push_back(text);
    }
    return all;
  }
  /// The names of the events that were reported to the Supervisor.
  Strings reported() {
    Strings all;
    while (auto event = decisions.next_report()) {
      all.push_back(std::visit([](const auto& what) { return type_name<std::decay_t<decltype(what)>>(); }, *event));
    }
    return all;
  }

  CoordinatorPolicy policy;
  Decisions decisions;
  Agents agents{{policy.lost_after, policy.closed_grace}, decisions};
};

}  // namespace taas::run
