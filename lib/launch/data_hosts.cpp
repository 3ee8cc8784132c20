#include "launch/data_hosts.hpp"

#include "base/environment/environment.hpp"
#include "base/text.hpp"
#include "base/timer.hpp"
#include "launch/coordinator_policy.hpp"
#include "launch/downlink.hpp"
#include "net/connect/listener.hpp"

namespace taas::launch {
namespace {

constexpr auto kPartingPatience = std::chrono::seconds(3);  // for agents that were dismissed

}  // namespace

struct DataHostLinks::State {
  boost::asio::io_context& io;
  DataHosts hosts;
  plan::Options options;
  std::vector<std::string> environment;
  std::unique_ptr<net::Listener> listener;
  std::unique_ptr<HostStarter> starter;
  CoordinatorLoop* run = nullptr;  // null before start() and after part(): who comes then is too early or too late
};

DataHostLinks::DataHostLinks(std::unique_ptr<State> state) : state_(std::move(state)) {}
DataHostLinks::~DataHostLinks() = default;

Result<std::unique_ptr<DataHostLinks>> DataHostLinks::listen(boost::asio::io_context& io,
                                                             const LocalRunOptions& options) {
  std::unique_ptr<State> state(new State{io, *options.data_hosts, options.plan.options,
                                         assignments(options.machine.environment), nullptr, nullptr, nullptr});
  auto listener = net::Listener::listen(io, {state->hosts.listen_addresses, 0, state->hosts.secret},
                                        [raw = state.get()](std::unique_ptr<net::Link> link) {
                                          if (raw->run != nullptr) admit(std::move(link), *raw->run);
                                        });
  if (!listener) return listener.error();
  state->listener = std::move(*listener);
  return std::unique_ptr<DataHostLinks>(new DataHostLinks(std::move(state)));
}

void DataHostLinks::start(CoordinatorLoop& run, Family& family) {
  State& state = *state_;
  state.run = &run;
  auto bootstrap =
      meeting_point(state.options, state.hosts.secret, state.hosts.listen_addresses, state.listener->port());
  HostStarter::Options options{state.hosts.hosts, state.environment, std::move(bootstrap), true};
  state.starter = std::make_unique<HostStarter>(state.io, family, std::move(options),
                                                [&state](int order, const std::string& message) {
                                                  if (state.run != nullptr) state.run->host_failed(order, message);
                                                });
  run.set_on_start_agent([&state](int order) { state.starter->start(order); });
  run.set_on_arrival([&state](int order) { state.starter->arrived(order); });
  state.starter->start_all();
}

void DataHostLinks::part() {
  state_->run = nullptr;
  bool waiting = true;
  Timer patience(state_->io, [&waiting] { waiting = false; });
  patience.set(steady_now() + kPartingPatience);
  while (waiting && state_->starter && state_->starter->busy()) state_->io.run_one();
}

}  // namespace taas::launch
