#pragma once

#include <c10/util/intrusive_ptr.h>

#include <memory>

namespace c10d {
class Backend;
}

namespace taas {

class PeerWatch;
class SharedSums;

/// The same backend with errors that are CommunicationErrors, "rank 1, all_reduce: rank 2 is gone (…)": those of its
/// calls, of its works and of their futures, which c10d's reducer waits for in backward. `watch` may be null.
c10::intrusive_ptr<c10d::Backend> with_named_errors(c10::intrusive_ptr<c10d::Backend> backend,
                                                    std::shared_ptr<PeerWatch> watch);

/// `named` is what with_named_errors() gave. Small sums are made in memory that the ranks share, before all_reduce
/// returns: for a caller whose ranks have nothing else to do in between that another waits for.
c10::intrusive_ptr<c10d::Backend> with_shared_sums(const c10::intrusive_ptr<c10d::Backend>& named,
                                                   std::shared_ptr<SharedSums> sums);

}  // namespace taas
