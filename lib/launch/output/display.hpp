#pragma once

#include <boost/asio/io_context.hpp>
#include <functional>
#include <memory>
#include <string>

#include "base/error.hpp"
#include "plan/launch_plan.hpp"
#include "ui/text/events.hpp"

namespace taas::launch {

/// The console of one run: the renderer that fits the terminal and the options, its timer, and back-pressure.
class Display {
 public:
  /// `on_crowded(true)` is called when the console's reader falls behind, `on_crowded(false)` when it has caught up.
  Display(boost::asio::io_context& io, const plan::LaunchPlan& plan, const plan::Machine& machine,
          std::function<void(bool)> on_crowded);
  ~Display();

  void show(const ui::Event& event);
  void say(ui::Message::Level level, std::string text);
  /// What the last line of a run that ends well will name.
  void set_output(std::string directory, std::size_t files);
  /// The terminal's size has changed.
  void resize();
  /// Shows what is still held back and waits, for a bounded time, until the console has taken it. Fails when something
  /// that was to be shown is lost, now or before.
  Result<> finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace taas::launch
