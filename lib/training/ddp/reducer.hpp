#pragma once

#include <c10/util/Exception.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "taas/distributed_data_parallel.hpp"
#include "training/backend/c10_error.hpp"
#include "training/ddp/module_tensors.hpp"

// The one place that knows c10d::Reducer, whose constructor grows from release to release.

namespace taas {

struct BuiltReducer {
  std::shared_ptr<c10d::Reducer> reducer;
  std::shared_ptr<c10d::Logger> logger;  ///< the reducer looks for it, and does not own it
};

/// Averages the gradients of `parameters`, which need some, each there once, while backward runs. A collective. Throws
/// ConfigError for options that this libtorch does not have.
BuiltReducer build_reducer(const ProcessGroup& group, const torch::nn::Module& module,
                           const std::vector<NamedTensor>& parameters, const DistributedDataParallelOptions& options);

/// Throws InvalidArgument for sizes of buckets that are none.
void check_bucket_limits(const DistributedDataParallelOptions& options);

/// The parameters in each bucket until the first backward is over, by their place in `tensors`. All of a bucket are of
/// one device and one type.
std::vector<std::vector<std::size_t>> first_buckets(const std::vector<at::Tensor>& tensors,
                                                    const std::vector<bool>& expect_sparse,
                                                    const DistributedDataParallelOptions& options);

/// What is wrong and what to do, from the text of an error of the reducer: its own advice is for the options of Python,
/// and in part wrong (a static graph is told to look for unused parameters).
std::string advice_for(const std::string& reducer_text, bool static_graph);

/// Runs `call`; an error of the reducer comes out as a taas::Exception with our advice.
template <class Call>
void reducing(bool static_graph, Call&& call) {
  try {
    call();
  } catch (const Exception&) {
    throw;
  } catch (const c10::DistError& error) {
    throw CommunicationError(one_line(error));
  } catch (const c10::Error& error) {
    throw Exception(advice_for(one_line(error), static_graph));
  }
}

}  // namespace taas
