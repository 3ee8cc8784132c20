#include "data/client/client_links.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace taas::data {

std::unique_ptr<ClientLink> ClientLinks::set(WorkerIndex worker, std::unique_ptr<ClientLink> link) {
  const auto place = static_cast<std::size_t>(worker);
  if (place >= links_.size()) links_.resize(place + 1);
  std::swap(links_[place], link);
  links_[place]->start();
  return link;
}

int ClientLinks::count_up() const {
  return static_cast<int>(std::count_if(links_.begin(), links_.end(), [](const auto& link) { return link->is_up(); }));
}

std::string ClientLinks::hopeless() const {
  std::string why = "there is no data worker";
  for (const auto& link : links_) {
    if (link->has_left()) continue;
    if (link->refusal().empty()) return {};
    why = fmt::format("{} cannot be used: {}", link->address().name, link->refusal());
  }
  return why;
}

void ClientLinks::stop() {
  for (const auto& link : links_) link->stop();
}

}  // namespace taas::data
