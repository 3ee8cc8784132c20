#pragma once

#include <boost/describe/class.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.hpp"

namespace taas::node {

/// What an agent has to know to find its coordinator. It comes as one line of JSON on the agent's standard input, never
/// on a command line or in an environment: it holds the run's secret.
struct Bootstrap {
  std::string run_id;
  std::string key;  ///< the run's secret, 64 hexadecimal digits
  std::vector<std::string> addresses;
  std::uint16_t port = 0;
  std::string name;               ///< of the host, as the user wrote it; empty: as it calls itself
  int order = -1;                 ///< place in the host list; -1: as SLURM numbers the node
  std::string interface;          ///< --interface; empty: whichever the others reach
  int node_timeout_ms = 30000;    ///< after which the coordinator gives a silent node up
  bool coordinator_first = true;  ///< it listens already: where nobody does, the run is over
  int order_base = 0;             ///< added to SLURM's number of the node
  bool data = false;              ///< an agent with data workers
  int data_workers = 0;           ///< how many; 0: as --data-cores says, or one for each core
  int join_timeout_ms = 60000;    ///< how long a coordinator that cannot be reached is looked for
  int ranks = 0;                  ///< Hello::ranks
  std::string log_level;          ///< as plan::OutputOptions has it
};

// clang-format off
BOOST_DESCRIBE_STRUCT(Bootstrap, (), (run_id, key, addresses, port, name, order, interface, node_timeout_ms,
                                      coordinator_first, order_base, data, data_workers, join_timeout_ms, ranks, log_level))
// clang-format on

/// One line, its end included.
std::string print_bootstrap(const Bootstrap& bootstrap);
/// An error never repeats the text.
Result<Bootstrap> parse_bootstrap(const std::string& line);

}  // namespace taas::node
