#pragma once

#include <map>
#include <string>
#include <vector>

namespace taas::test {

/// What python_peer can do, by name, with the arguments behind the name.
struct PeerTask {
  std::string usage;  ///< "FROM TO"
  void (*run)(const std::vector<std::string>& arguments) = nullptr;
};
using PeerTasks = std::map<std::string, PeerTask>;

PeerTasks amp_peer_tasks();
PeerTasks checkpoint_peer_tasks();
PeerTasks clip_peer_tasks();
PeerTasks sampler_peer_tasks();
PeerTasks schedule_peer_tasks();
PeerTasks zero_peer_tasks();

}  // namespace taas::test
