#pragma once

#include <string>
#include <string_view>

namespace taas::run {

/// These words only say that another rank went away or did not come: the cause is to be looked for there.
bool tells_of_lost_peer(std::string_view text);

/// These words name the ranks that did not come. Who only lost the rank that says them knows less.
bool names_lost_peer(std::string_view text);

/// These words say that a rank waited in the store for others until its timeout.
bool tells_of_store_timeout(std::string_view text);

/// A collective that did not end in time: the peer may be alive, and not have come.
bool tells_of_timeout(std::string_view text);

}  // namespace taas::run
