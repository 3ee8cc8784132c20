// Programs of four ranks of which rank 2 keeps the others waiting, each in its own way: native_kinds KIND FOLDER.
// A comment `// <kind>` marks the line that the launcher has to name.
#include <fcntl.h>
#include <sys/stat.h>
#include <torch/nn/modules/linear.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <future>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>
#include <taas/taas.hpp>
#include <thread>

namespace {

constexpr auto kLong = std::chrono::hours(1);

void step(const taas::ProcessGroup& group) {
  auto tensor = at::ones({4});
  taas::all_reduce(group, tensor);
}

void wait_for_nothing() {
  std::mutex mutex;
  std::unique_lock first(mutex);
  std::unique_lock second(mutex);  // lock
}

volatile long counter = 0;

/// What rank 2 does, and no other.
void odd(const std::string& kind, const std::string& folder, const taas::ProcessGroup& group) {
  if (kind == "lock") wait_for_nothing();
  if (kind == "sleep") std::this_thread::sleep_for(kLong);  // sleep
  if (kind == "loop") {
    while (counter >= 0) counter = counter + 1 - counter % 2;  // loop
  }
  if (kind == "thread") {
    std::thread thread([] { ::pause(); });
    thread.join();  // thread
  }
  if (kind == "future") {
    std::promise<int> promise;
    promise.get_future().wait();  // future
  }
  if (kind == "stopped") ::raise(SIGSTOP);  // stopped
  if (kind == "fifo") {
    const auto path = folder + "/fifo";
    ::mkfifo(path.c_str(), 0600);
    ::close(::open(path.c_str(), O_RDONLY));  // fifo
  }
  if (kind == "receive") {
    auto tensor = at::ones({4});
    taas::recv(group, tensor, 3);  // receive
  }
  if (kind == "another collective") {
    taas::barrier(group);  // another collective
  }
}

void backward(const taas::ProcessGroup& group) {
  torch::nn::Linear linear(4, 4);
  taas::DistributedDataParallel model(linear, group);
  auto loss = model(at::ones({1, 4})).sum();
  if (group.rank() == 2) std::promise<int>().get_future().wait();  // backward
  loss.backward();
}

}  // namespace

int main(int count, char** words) {
  if (count < 3) return 2;
  const std::string kind = words[1], folder = words[2];
  if (kind == "never joins" && std::string(std::getenv("RANK")) == "2") ::pause();  // never joins
  const auto group = taas::init({.backend = taas::Backend::kGloo, .timeout = kLong});
  step(group);
  if (kind == "backward") backward(group);
  if (kind == "early exit" && group.rank() == 2) std::_Exit(0);
  if (group.rank() == 2) odd(kind, folder, group);
  step(group);
  step(group);
}
