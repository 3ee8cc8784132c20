#include "run/coordinator/admission.hpp"

#include <fmt/format.h>

namespace taas::run {

std::string Admission::refusal(const Hello& hello) const {
  if (hello.protocol != kProtocolVersion || hello.version != version_) {
    return fmt::format("it runs taas-run {} (protocol {}), this run {} (protocol {}): install the same on all nodes",
                       hello.version, hello.protocol, version_, kProtocolVersion);
  }
  bool is_data = hello.role == AgentRole::kData;
  auto holder = is_data ? data_nodes_.holder(hello.order) : membership_.holder(hello.order);
  if (!holder) return "";
  return fmt::format("{} is node {} already", name_of(agents_.at(*holder).hello), hello.order);
}

bool Admission::came_back_twice(const Hello& hello) const {
  auto holder = membership_.holder(hello.order);
  bool started_again = holder && membership_.was_started_again(hello.order);
  return started_again && agents_.at(*holder).hello.hostname == hello.hostname;
}

}  // namespace taas::run
