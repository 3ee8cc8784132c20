#pragma once

#include <c10/util/intrusive_ptr.h>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "taas/join.hpp"

namespace taas {

/// Join::notify_join_context, which has the number of ranks with inputs on its way; null where nothing is communicated.
c10::intrusive_ptr<c10d::Work> count_active_ranks(const Joinable& joinable);

}  // namespace taas
