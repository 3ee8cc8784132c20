#pragma once

#include <boost/describe/class.hpp>
#include <string>
#include <vector>

#include "plan/launch_plan.hpp"
#include "storage/run_directory.hpp"

namespace taas::node {

/// What a node has to know of the run: Welcome::run, as JSON.
struct Launch {
  plan::LaunchSettings settings;
  std::string run_folder;  ///< absolute; the same on every node
  std::string log_folder;  ///< this run's folder below --log-dir; empty: none
  int most_ranks_on_node = 1;
  std::vector<int> ranks_on_node;  ///< by order, where each node has its own place for good; else empty
  std::string data_key;            ///< what data workers and ranks prove to each other: 64 hexadecimal digits
  std::string run_mark;            ///< what marks of the run's folder begin with (storage/folder_marker.hpp)
};

BOOST_DESCRIBE_STRUCT(Launch, (),
                      (settings, run_folder, log_folder, most_ranks_on_node, ranks_on_node, data_key, run_mark))

/// As many as may ever run on the node with this place in the list of hosts.
int most_ranks_of(const Launch& launch, int order);

/// Welcome::run.
std::string print_launch(const plan::LaunchPlan& plan, const plan::Machine& machine, std::string working_directory,
                         const storage::RunDirectory& folder, std::string data_key, std::string run_mark = {});

}  // namespace taas::node
