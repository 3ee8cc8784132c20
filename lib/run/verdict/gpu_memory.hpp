#pragma once

#include <string>
#include <string_view>

#include "run/events/generation.hpp"
#include "run/events/policy.hpp"

namespace taas::run {

/// Whether a rank found too little memory on a GPU, by what it said.
bool tells_of_full_gpu(std::string_view text);

/// A call of CUDA has failed: the driver may know of trouble with the GPU.
bool tells_of_cuda_error(std::string_view text);

/// "GPU 2's memory is held by process 811 (jupyter): 60.0 GiB, rank 3: 10.0 GiB": who held the memory that `culprit`
/// did not get, with ranks of the run as such. Empty when the driver has not said.
std::string name_gpu_holders(Rank culprit, const GenerationRecord& generation, const Policy& policy);

/// "GPU 2 has fallen off the bus: dmesg has an Xid; …". Empty when the driver knows of nothing.
std::string name_gpu_trouble(const Evidence& evidence);

}  // namespace taas::run
