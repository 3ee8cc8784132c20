#pragma once

#include <boost/describe/class.hpp>
#include <boost/describe/enum.hpp>
#include <string>
#include <vector>

namespace taas::plan {

/// Whose launcher's habits ranks find, besides those of torchrun, which they always find.
enum class Framework {
  kTorch,
  kTensorFlow,  ///< TF_CONFIG
  kDeepSpeed,   ///< .deepspeed_env, and --local_rank in front of the program's arguments
};

/// What ranks are told beyond the contract.
struct FrameworkOptions {
  Framework framework = Framework::kTorch;   ///< --framework
  std::vector<std::string> env;              ///< --env NAME=value, as read_extra_variable() takes it: for all ranks
  std::vector<std::string> rank0_env;        ///< --rank0-env, the same; wins over `env`
  std::vector<std::string> other_ranks_env;  ///< --other-ranks-env, the same; wins over `env`
};

// clang-format off
BOOST_DESCRIBE_ENUM(Framework, kTorch, kTensorFlow, kDeepSpeed)
BOOST_DESCRIBE_STRUCT(FrameworkOptions, (), (framework, env, rank0_env, other_ranks_env))
// clang-format on

}  // namespace taas::plan
