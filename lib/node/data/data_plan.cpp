#include "node/data/data_plan.hpp"

#include <fcntl.h>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstdio>

#include "base/files.hpp"

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

Result<> write_data_plan(const std::string& path, const DataPlan& plan) {
  auto fresh = path + ".new";
  {
    Fd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!file) return system_error("cannot write " + fresh, errno);
    if (auto written = write_all(file, print_data_plan(plan)); !written) return written;
  }
  if (std::rename(fresh.c_str(), path.c_str()) != 0) return system_error("cannot replace " + path, errno);
  return {};
}

}  // namespace taas::node
