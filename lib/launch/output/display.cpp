#include "launch/output/display.hpp"

#include <fmt/chrono.h>

#include "base/timer.hpp"
#include "ui/console.hpp"
#include "ui/view/renderer.hpp"

namespace taas::launch {
namespace {

constexpr auto kPatience = std::chrono::seconds(5);  // at the end, for a console that takes nothing

Result<> finish_one(ui::Console& console, const char* name) {
  auto left = console.finish(steady_now() + kPatience);
  auto lost = console.lost();
  if (!lost) return std::move(lost).error().with(name);
  if (left == 0) return {};
  return unavailable_error(
      fmt::format("{}: its reader took nothing for {}, and {} bytes are left", name, kPatience, left));
}

}  // namespace

struct Display::State {
  State(boost::asio::io_context& io, const plan::LaunchPlan& plan, const plan::Machine& machine,
        std::function<void(bool)> crowd)
      : on_crowded(std::move(crowd)),
        disk(io),
        out(io, ui::duplicate(ui::Stream::kStdout), watched(out_crowded)),
        err(io, ui::duplicate(ui::Stream::kStderr), watched(err_crowded)),
        renderer(
            ui::make_renderer(ui::renderer_options(plan, machine, ui::inspect_terminal(), steady_now()), out, err)),
        redraw(io, [this] { tick(); }) {}

  ui::Console::Options watched(bool& crowded) {
    ui::Console::Options options;
    options.disk = &disk;
    options.on_crowded = [this, &crowded](bool now) {
      bool before = out_crowded || err_crowded;
      crowded = now;
      if (before != (out_crowded || err_crowded)) on_crowded(!before);
    };
    return options;
  }

  void tick() {
    renderer->tick(steady_now());
    after_output();
  }

  void after_output() {
    if (auto deadline = renderer->next_deadline()) {
      redraw.set(*deadline);
    } else {
      redraw.clear();
    }
  }

  std::function<void(bool)> on_crowded;
  bool out_crowded = false;
  bool err_crowded = false;
  DiskThread disk;  // one, so that lines of both stay in order where both are the same file
  ui::Console out;
  ui::Console err;
  std::unique_ptr<ui::Renderer> renderer;
  Timer redraw;
};

Display::Display(boost::asio::io_context& io, const plan::LaunchPlan& plan, const plan::Machine& machine,
                 std::function<void(bool)> on_crowded)
    : state_(std::make_unique<State>(io, plan, machine, std::move(on_crowded))) {}

Display::~Display() = default;

void Display::show(const ui::Event& event) {
  state_->renderer->show(event);
  state_->after_output();
}

void Display::say(ui::Message::Level level, std::string text) {
  show(ui::Message{level, std::move(text), steady_now()});
}

void Display::set_output(std::string directory, std::size_t files) {
  state_->renderer->set_output({std::move(directory), files});
}

void Display::resize() { state_->renderer->resize(ui::inspect_terminal().columns); }

Result<> Display::finish() {
  state_->renderer->finish();
  auto out = finish_one(state_->out, "standard output");
  auto err = finish_one(state_->err, "standard error");
  return out ? err : out;
}

}  // namespace taas::launch
