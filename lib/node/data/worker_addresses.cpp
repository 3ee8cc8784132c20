#include "node/data/worker_addresses.hpp"

#include <utility>

#include "net/addresses.hpp"

namespace taas::node {
namespace {

constexpr auto kProbePatience = std::chrono::seconds(3);

}  // namespace

void WorkerAddresses::find(const run::DataWorker& worker) {
  if (worker.addresses.empty()) {
    nodes_.erase(worker.node);
    return;
  }
  if (nodes_.contains(worker.node)) return;
  nodes_[worker.node].again = std::make_unique<Timer>(io_, [this, worker] { probe(worker); });
  probe(worker);
}

std::string WorkerAddresses::of(const std::string& node) const {
  auto found = nodes_.find(node);
  return found == nodes_.end() ? std::string() : found->second.address;
}

void WorkerAddresses::probe(const run::DataWorker& worker) {
  nodes_[worker.node].probing = net::probe(
      io_, worker.addresses, worker.port, kProbePatience,
      [this, worker](std::vector<std::string> reached, const std::string&) { probed(worker, std::move(reached)); });
}

void WorkerAddresses::probed(const run::DataWorker& worker, std::vector<std::string> reached) {
  auto& found = nodes_[worker.node];
  if (reached.empty()) {
    if (!std::exchange(found.told, true)) {
      callbacks_.remark("no address of " + worker.name + " can be reached from here; it is tried again and again");
    }
    return found.again->set(steady_now() + again_);
  }
  found.address = std::move(reached.front());
  callbacks_.found();
}

}  // namespace taas::node
