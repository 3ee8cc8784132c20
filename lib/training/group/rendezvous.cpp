#include "training/group/rendezvous.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include "training/backend/c10_error.hpp"

namespace taas {
namespace {

std::string place(const Environment& environment) {
  return environment.master_address + ":" + std::to_string(environment.master_port);
}

c10::intrusive_ptr<c10d::Store> connect_tcp(const Environment& environment, std::chrono::milliseconds timeout) {
  c10d::TCPStoreOptions options;
  options.port = environment.master_port;
  options.isServer = !environment.launcher_has_store && environment.rank == 0;
  options.numWorkers = static_cast<std::size_t>(environment.world_size);
  options.waitWorkers = !options.isServer;  // a server would wait for all without being able to say who is missing
  options.timeout = timeout;
  c10::intrusive_ptr<c10d::Store> store =
      communicating("cannot " + std::string(options.isServer ? "serve" : "reach") + " the store at " +
                        place(environment) + " (MASTER_ADDR, MASTER_PORT)",
                    [&] { return c10::make_intrusive<c10d::TCPStore>(environment.master_address, options); });
  if (!environment.launcher_has_store) return store;
  // torchrun keeps one store over restarts.
  return c10::make_intrusive<c10d::PrefixStore>("/worker/attempt_" + std::to_string(environment.restart_count), store);
}

[[noreturn]] void report_missing(c10d::Store& store, const Environment& environment,
                                 const std::vector<std::string>& keys, const std::exception& error) {
  std::vector<int> missing;
  communicating("lost the store at " + place(environment), [&] {
    for (int rank = 0; rank < environment.world_size; ++rank) {
      if (!store.check({keys[static_cast<std::size_t>(rank)]})) missing.push_back(rank);
    }
  });
  if (missing.empty()) throw CommunicationError("lost the store at " + place(environment) + ": " + one_line(error));
  throw CommunicationError("waited in vain for ranks " + list_ranks(missing) + " of " +
                           std::to_string(environment.world_size) + " to join through the store at " +
                           place(environment));
}

}  // namespace

c10::intrusive_ptr<c10d::Store> connect_store(const Environment& environment, const std::string& group,
                                              std::chrono::milliseconds timeout) {
  // One connection for all groups of the process, until it ends: a server that went away with its group would take
  // along the ranks that are not through yet, and a second one could not have its port.
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, c10::intrusive_ptr<c10d::Store>>;
  const std::lock_guard lock(mutex);
  auto& store = known[place(environment)];
  if (!store) store = connect_tcp(environment, timeout);
  return c10::make_intrusive<c10d::PrefixStore>(group, store);
}

std::vector<std::string> exchange(c10d::Store& store, const Environment& environment, const std::string& value,
                                  std::chrono::milliseconds timeout) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < environment.world_size; ++rank) keys.push_back("backend/" + std::to_string(rank));
  try {
    store.set(keys[static_cast<std::size_t>(environment.rank)], value);
    store.wait(keys, timeout);
    std::vector<std::string> values;
    for (const auto& bytes : store.multiGet(keys)) values.emplace_back(bytes.begin(), bytes.end());
    return values;
  } catch (const std::exception& error) {
    report_missing(store, environment, keys, error);
  }
}

std::string list_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kMostNamed = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMostNamed); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kMostNamed) text += " and " + std::to_string(ranks.size() - kMostNamed) + " more";
  return text;
}

}  // namespace taas
