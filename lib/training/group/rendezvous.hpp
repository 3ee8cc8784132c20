#pragma once

#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <string>
#include <vector>

#include "training/backend/environment.hpp"

namespace c10d {
class Store;
}

namespace taas {

/// The store of a group: served by the launcher or by rank 0, with a name space of its own for each restart and each
/// name.
c10::intrusive_ptr<c10d::Store> connect_store(const Environment& environment, const std::string& group,
                                              std::chrono::milliseconds timeout);

/// Publishes `value` for this rank and returns those of all ranks, by rank, when all have come. Each rank SETs
/// backend/<rank>, by which the launcher sees who has joined. Throws CommunicationError naming the missing ranks.
std::vector<std::string> exchange(c10d::Store& store, const Environment& environment, const std::string& value,
                                  std::chrono::milliseconds timeout);

/// "0, 3, 4 and 12 more": at most eight numbers.
std::string list_ranks(const std::vector<int>& ranks);

}  // namespace taas
