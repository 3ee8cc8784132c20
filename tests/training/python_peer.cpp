// The C++ half of the tests that compare with Python: the scripts named *_reference.py run it and look at what it did.
// Its tasks are in the folder peer.
#include <iostream>
#include <string>
#include <vector>

#include "peer/peer_tasks.hpp"

int main(int argc, char** argv) {
  using namespace taas::test;
  PeerTasks tasks;
  for (const auto of : {amp_peer_tasks, checkpoint_peer_tasks, clip_peer_tasks, sampler_peer_tasks, schedule_peer_tasks,
                        zero_peer_tasks}) {
    tasks.merge(of());
  }
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto found = tasks.find(words.empty() ? "" : words.front());
  if (found != tasks.end()) {
    found->second.run({words.begin() + 1, words.end()});
    return 0;
  }
  for (const auto& [name, task] : tasks) std::cerr << "python_peer " << name << ' ' << task.usage << '\n';
  return 2;
}
