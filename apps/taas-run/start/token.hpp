#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "net/secret.hpp"
#include "plan/launch_mode/launch_mode.hpp"

namespace taas::cli {

/// The secret of a run whose nodes join by themselves, out of --token-file or the value of TAAS_TOKEN.
Result<net::Secret> joining_secret(const plan::Join& mode, const plan::NodesOptions& nodes,
                                   const std::string& variable);

/// Whether this node is the one where the others meet.
struct JoiningRole {
  bool coordinates = false;
  std::vector<std::string> listen_addresses;  ///< numeric; when it coordinates
  Fd claim = {};                              ///< kept while it does, so that no second one on this machine wants to
};

/// By --node-rank or is_host; else by whether the endpoint is an address of this machine whose port is free.
Result<JoiningRole> choose_role(const plan::Join& mode, const std::map<std::string, std::string>& environment);

}  // namespace taas::cli
