#include "node/data/data_plan.hpp"

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

namespace taas::node {
namespace {

namespace json = boost::json;

const char* name_of(plan::Compression compression) {
  switch (compression) {
    case plan::Compression::kLz4:
      return "lz4";
    case plan::Compression::kZstd:
      return "zstd";
    case plan::Compression::kNone:
      break;
  }
  return "none";
}

}  // namespace

std::string print_data_plan(const DataPlan& plan) {
  json::array workers;
  for (const auto& worker : plan.workers) {
    workers.push_back(
        {{"name", worker.name}, {"address", worker.address}, {"port", worker.port}, {"unix", worker.unix_path}});
  }
  const auto& options = plan.options;
  return json::serialize(json::object{{"run", plan.run_id},
                                      {"key", plan.key},
                                      {"workers", std::move(workers)},
                                      {"cpus", options.cpus.value_or(0)},
                                      {"encryption", options.plain ? "plain" : "tls"},
                                      {"compression", name_of(options.compression)},
                                      {"buffer_bytes", options.buffer_bytes},
                                      {"units", options.units},
                                      {"on_error", options.on_error == plan::OnDataError::kRaise ? "raise" : "skip"},
                                      {"loader", options.loader},
                                      {"world_size", plan.world_size}});
}

Result<> write_data_plan(const HeldPath& file, const DataPlan& plan) {
  return file.folder.replace(file.name, print_data_plan(plan), 0600);
}

}  // namespace taas::node
