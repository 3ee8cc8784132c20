#include "node/data/worker_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace taas::node {

Result<> WorkerList::open(boost::asio::io_context& io, const std::string& folder) {
  for (int index = 0; index < options_.workers; ++index) {
    auto opened = open_data_listeners(io, options_.listen_address, fmt::format("{}/{}", folder, index));
    if (!opened) return opened.error();
    listeners_.push_back(std::move(*opened));
  }
  if (options_.simulated_machines == 0) return {};
  places_.resize(listeners_.size());
  std::iota(places_.begin(), places_.end(), 0);
  return {};
}

void WorkerList::use(run::DataWorkers list) {
  list_ = std::move(list);
  if (places_.empty()) places_ = own_places();
}

bool WorkerList::is_here(const run::DataWorker& worker) const {
  return !options_.instance.empty() && worker.node == options_.instance;
}

std::vector<int> WorkerList::own_places() const {
  std::vector<int> own;
  for (std::size_t place = 0; place < all().size(); ++place) {
    if (is_here(all()[place]) && own.size() < listeners_.size()) own.push_back(static_cast<int>(place));
  }
  return own;
}

std::string WorkerList::name_of(int index) const {
  if (options_.simulated_machines == 0) {
    return all().at(static_cast<std::size_t>(places_.at(static_cast<std::size_t>(index)))).name;
  }
  int machine = index * options_.simulated_machines / std::max(1, options_.workers);
  return fmt::format("data worker {} (CPU machine {})", index, machine);
}

std::vector<DataPlanWorker> WorkerList::entries(
    const std::function<std::string(const std::string& node)>& address_of) const {
  std::vector<DataPlanWorker> entries;
  if (options_.simulated_machines > 0) {
    for (int index = 0; index < options_.workers; ++index) {
      const auto& own = listeners_[static_cast<std::size_t>(index)];
      entries.push_back({name_of(index), options_.listen_address, own.port, own.unix_path});
    }
    return entries;
  }
  for (const auto& worker : all()) {
    if (is_here(worker)) {
      entries.push_back(own_entry(worker, static_cast<int>(entries.size())));
      continue;
    }
    auto address = address_of(worker.node);
    const auto port = address.empty() ? std::uint16_t{0} : worker.port;
    entries.push_back({worker.name, std::move(address), port, ""});
  }
  return entries;
}

DataPlanWorker WorkerList::own_entry(const run::DataWorker& worker, int place) const {
  auto index = std::find(places_.begin(), places_.end(), place) - places_.begin();
  if (index >= static_cast<std::ptrdiff_t>(listeners_.size())) return {worker.name, "", 0, ""};
  const auto& own = listeners_[static_cast<std::size_t>(index)];
  return {worker.name, worker.addresses.empty() ? "" : worker.addresses.front(), own.port, own.unix_path};
}

}  // namespace taas::node
