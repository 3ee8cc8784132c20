#pragma once

#include <string>

// gloo reads messages in a thread of its own. When one has more bytes than the tensor that waits for it, gloo throws
// there, where nobody can catch it, and the process ends. A message does not say what it is for, so that the ranks
// would have to exchange another one for each collective to know before (InitOptions::check_collectives does that).

namespace taas {

/// From here on a process that ends by an exception of gloo's ends with one line that says why and what to do. The
/// program's own std::terminate_handler follows; libstdc++'s does not. `begun_last` is asked then: "rank 1, all_reduce
/// of (4) Float", or nothing.
void explain_end_by_gloo(std::string (*begun_last)());

/// The line: `error` is gloo's text, "[enforce fail at …] op.preamble.length <= op.nbytes. 4096 vs 4. …".
std::string end_by_gloo(const std::string& operation, const std::string& error);

}  // namespace taas
