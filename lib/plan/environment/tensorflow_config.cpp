#include "plan/environment/tensorflow_config.hpp"

#include <boost/describe/class.hpp>
#include <boost/json/serialize.hpp>

#include "base/json/json_writer.hpp"

namespace taas::plan {
namespace {

struct Cluster {
  std::vector<std::string> worker;
};
struct Task {
  std::string type = "worker";
  int index = 0;
};
struct Config {
  Cluster cluster;
  Task task;
};

// clang-format off
BOOST_DESCRIBE_STRUCT(Cluster, (), (worker))
BOOST_DESCRIBE_STRUCT(Task, (), (type, index))
BOOST_DESCRIBE_STRUCT(Config, (), (cluster, task))
// clang-format on

}  // namespace

std::string tensorflow_config(const std::vector<std::string>& servers, Rank rank) {
  Config config;
  config.cluster.worker = servers;
  config.task.index = rank.value;
  return boost::json::serialize(JsonWriter::write(config));
}

}  // namespace taas::plan
