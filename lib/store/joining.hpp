#pragma once

#include <optional>
#include <string_view>

#include "base/ids.hpp"

namespace taas::store {

/// The rank that has come up when this key is set, if it is such a key.
///
/// init_process_group() lets each rank with a gloo backend set "/default_pg/<n>//<device>//<context>/<rank>" for the
/// default group. Groups made later have one part more in the middle, and their ranks are other numbers. A group of
/// NCCL alone sets no key a rank. Ranks without torch that come up by the package `taas` set "taas/joined/<rank>".
std::optional<Rank> joined_rank(std::string_view key);

}  // namespace taas::store
