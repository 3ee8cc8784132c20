#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "node/process/private_folder.hpp"
#include "proc/preload/preloaded_python.hpp"
#include "session/session_order.hpp"

namespace taas::cli {

struct SessionOptions {
  SessionWishes wishes;
  std::vector<std::string> flags;           ///< as they were typed
  PreloadRequest python;                    ///< what its interpreter is made of
  int end_with = 0;                         ///< a process whose end is the session's; 0: none
  std::chrono::milliseconds idle_limit{0};  ///< without a run for so long it ends; 0: it stays
};

/// The life of a session (`taas-run up`): has one Python that has imported torch, and has a launcher forked from it for
/// each command `taas-run --in NAME` (lib/python/preload/taas_preload/session.py). Where a run has wanted another
/// interpreter (a changed environment, another release of torch), that is the session's from then on. Returns when it
/// was told to end, or nobody has wanted anything of it for so long, and its runs are over. Killed, it takes all that
/// it has started with it. What happens is written, one message each, to `told`, until that is closed: first of all
/// whether it is ready.
int serve_session(SessionOptions options, node::PrivateFolder folder, Fd told);

}  // namespace taas::cli
