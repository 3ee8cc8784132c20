#pragma once

#include <boost/asio/ip/address.hpp>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "net/secret.hpp"
#include "plan/launch_mode/launch_mode.hpp"

namespace taas::cli {

/// The secret of a run whose nodes join by themselves, out of --token-file or the value of TAAS_TOKEN.
Result<net::Secret> joining_secret(const plan::Join& mode, const plan::NodesOptions& nodes,
                                   const std::string& variable);

/// The node where the others meet: it coordinates.
struct FirstNode {
  std::vector<std::string> listen_addresses;  ///< numeric
  Fd claim = {};                              ///< kept while it listens, so that no second one on this machine wants to
  std::string remark = {};                    ///< for the user, if not empty
};

/// Of the node that was told to be the first. Where others look for it by a name that has no address yet, or that of a
/// machine that was there before, it listens on all of `own_addresses`: they find it once the name is this machine's.
Result<FirstNode> be_first(const plan::Join& mode, std::vector<std::string> own_addresses,
                           const std::map<std::string, std::string>& environment);

/// Of a node that was told nothing: whether the addresses that the endpoint's name has at this moment are this
/// machine's and the port is free there. Nothing where they are not, or another agent of this machine is the first.
Result<std::optional<FirstNode>> try_to_be_first(const plan::Join& mode,
                                                 const std::vector<boost::asio::ip::address>& found,
                                                 const std::map<std::string, std::string>& environment);

}  // namespace taas::cli
