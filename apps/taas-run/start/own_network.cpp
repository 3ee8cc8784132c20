#include "start/own_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "net/addresses.hpp"
#include "plan/program/python_command.hpp"
#include "plan/program/python_sources.hpp"

namespace taas::cli {
namespace {

using boost::asio::ip::tcp;

/// An address can be bound where it is this machine's, loopback included.
bool is_own(const boost::asio::ip::address& address) {
  boost::asio::io_context io;
  tcp::acceptor acceptor(io);
  tcp::endpoint endpoint(address, 0);
  boost::system::error_code failed;
  acceptor.open(endpoint.protocol(), failed);
  if (!failed) acceptor.bind(endpoint, failed);
  return !failed;
}

bool is_name(const std::string& host) {
  boost::system::error_code failed;
  boost::asio::ip::make_address(host, failed);
  return failed.failed();
}

/// `unknown` is what a name means for which no address is known at this moment.
Result<> check_host(std::string host, const plan::Machine& machine, std::string_view way_out, const Result<>& unknown) {
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  if (host.empty() || host == "localhost" || host == machine.hostname) return {};
  boost::asio::io_context io;
  boost::system::error_code failed;
  auto found = tcp::resolver(io).resolve(host, "", failed);
  if (failed) return unknown;
  bool own =
      std::any_of(found.begin(), found.end(), [](const auto& entry) { return is_own(entry.endpoint().address()); });
  return own ? Result<>() : usage_error(fmt::format("not an address of this machine; {}", way_out));
}

Result<> check_interface(const std::string& interface) {
  if (interface.empty()) return {};
  auto addresses = net::candidate_addresses(interface);
  return addresses ? Result<>() : std::move(addresses).error().with("--interface " + interface);
}

/// Whether this process goes on as a node, or as the only one.
bool is_node(const plan::LaunchMode& mode) {
  return std::holds_alternative<plan::OneMachine>(mode) || std::holds_alternative<plan::SlurmTask>(mode) ||
         std::holds_alternative<plan::Join>(mode);
}

}  // namespace

Result<> check_own_network(const plan::LaunchPlan& plan, const plan::Machine& machine) {
  const auto& rendezvous = plan.options.rendezvous;
  if (std::holds_alternative<plan::SlurmSubmit>(plan.launch_mode))
    return {};  // all of that is for the nodes of the job
  if (auto there = check_interface(plan.options.nodes.interface); !there) return there;
  if (rendezvous.standalone || !is_node(plan.launch_mode)) return {};
  // Where nodes join, a name may be known later, or stand for the machine that was there before.
  const bool may_change = std::holds_alternative<plan::Join>(plan.launch_mode);
  if (const auto& host = rendezvous.local_addr; host && !(may_change && is_name(*host))) {
    auto own = check_host(*host, machine, "--local-addr is one by which other nodes reach this machine",
                          usage_error("no address is known for this name"));
    if (!own) return std::move(own).error().with("--local-addr " + *host);
  }
  if (!std::holds_alternative<plan::OneMachine>(plan.launch_mode) || !rendezvous.master_addr) return {};
  auto own = check_host(*rendezvous.master_addr, machine,
                        "with one node it can only be this one, and several nodes are asked for by --nnodes", {});
  return own ? own : std::move(own).error().with("--master-addr " + *rendezvous.master_addr);
}

Result<> check_loopback(plan::LaunchPlan& plan, const plan::ResolvedProgram& program) {
  bool among_themselves = std::holds_alternative<plan::OneMachine>(plan.launch_mode) && plan.world_size() > 1;
  if (!among_themselves || !net::interface_of(net::loopback_address()).empty()) return {};
  constexpr const char* kDown =
      "the loopback interface is down, by which the ranks of one machine reach each other: ip link set lo up";
  auto command = plan::parse_python_command(program.command);
  if (command && plan::read_program(*command, plan::read_source).trains) return unavailable_error(kDown);
  plan.note(kDown);
  return {};
}

}  // namespace taas::cli
