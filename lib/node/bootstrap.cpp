#include "node/bootstrap.hpp"

#include <boost/json/serialize.hpp>

#include "base/json/json.hpp"

namespace taas::node {

std::string print_bootstrap(const Bootstrap& bootstrap) { return boost::json::serialize(to_json(bootstrap)) + "\n"; }

Result<Bootstrap> parse_bootstrap(const std::string& line) {
  auto value = parse_json(line);
  if (!value) return protocol_error("what an agent is started with did not come on its standard input");
  return from_json<Bootstrap>(*value);
}

}  // namespace taas::node
