#include "training/group/rendezvous.hpp"

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

c10::intrusive_ptr<c10d::Store> connect_tcp(const Environment& environment, std::chrono::milliseconds timeout,
                                            bool serve) {
  c10d::TCPStoreOptions options;
  options.port = environment.master_port;
  options.isServer = serve;
  options.numWorkers = static_cast<std::size_t>(environment.world_size);
  options.waitWorkers = !options.isServer;  // a server would wait for all without being able to say who is missing
  options.timeout = timeout;
  return communicating("cannot " + std::string(options.isServer ? "serve" : "reach") + " the store at " +
                           place(environment) + " (MASTER_ADDR, MASTER_PORT)",
                       [&] { return c10::make_intrusive<c10d::TCPStore>(environment.master_address, options); });
}

/// torchrun keeps one store over restarts.
c10::intrusive_ptr<c10d::Store> of_this_start(const Environment& environment, c10::intrusive_ptr<c10d::Store> store) {
  if (environment.store_host != StoreHost::kLauncher) return store;
  return c10::make_intrusive<c10d::PrefixStore>("/worker/attempt_" + std::to_string(environment.restart_count), store);
}

std::vector<std::string> keys_of_all(const Environment& environment) {
  std::vector<std::string> keys;
  for (int rank = 0; rank < environment.world_size; ++rank) keys.push_back("backend/" + std::to_string(rank));
  return keys;
}

[[noreturn]] void report_missing(c10d::Store& store, const Environment& environment, const std::exception& error) {
  std::vector<int> missing;
  auto keys = keys_of_all(environment);
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
  const bool serve = environment.store_host == StoreHost::kRankZero && environment.rank == 0;
  // One connection for all groups of the process, until it ends: a server that went away with its group would take
  // along the ranks that are not through yet, and a second one could not have its port.
  static std::mutex mutex;
  static auto& known = *new std::map<std::string, c10::intrusive_ptr<c10d::Store>>;
  const std::lock_guard lock(mutex);
  auto& store = known[place(environment)];
  if (!store) store = of_this_start(environment, connect_tcp(environment, timeout, serve));
  return c10::make_intrusive<c10d::PrefixStore>(group, store);
}

std::vector<std::string> exchange(c10d::Store& store, const Environment& environment, const std::string& value,
                                  std::chrono::milliseconds timeout) {
  auto keys = keys_of_all(environment);
  try {
    store.set(keys[static_cast<std::size_t>(environment.rank)], value);
    store.wait(keys, timeout);
    std::vector<std::string> values;
    for (const auto& bytes : store.multiGet(keys)) values.emplace_back(bytes.begin(), bytes.end());
    return values;
  } catch (const std::exception& error) {
    report_missing(store, environment, error);
  }
}

std::string list_ranks(const std::vector<int>& ranks) {
  constexpr std::size_t kMost = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kMost); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]);
  }
  if (ranks.size() > kMost) text += " and " + std::to_string(ranks.size() - kMost) + " more";
  return text;
}

}  // namespace taas
