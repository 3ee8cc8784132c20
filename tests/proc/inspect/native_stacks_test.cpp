#include "proc/inspect/native_stacks.hpp"

#include <alloca.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <functional>

#include "base/clock.hpp"
#include "base/text.hpp"
#include "catch.hpp"
#include "proc/inspect/thread_facts.hpp"

namespace native_stacks_test {

using namespace taas;

volatile int counter = 0;

// What the children do. Each call does something afterwards, so that it is none that ends its function.

__attribute__((noinline)) void wait_inside() {
  while (counter >= 0) ::pause();
}
__attribute__((noinline)) void wait_outside() {
  wait_inside();
  counter = counter + 1;
}

/// What has stack of a size that is not known when it is compiled finds its caller by its frame pointer.
__attribute__((noinline)) void wait_with_frame_pointer(std::size_t size) {
  volatile char* room = static_cast<volatile char*>(alloca(size));
  for (std::size_t i = 0; i < size; ++i) room[i] = 1;
  while (room[0] > 0) ::pause();
}
__attribute__((noinline)) void wait_outside_of_it() {
  wait_with_frame_pointer(static_cast<std::size_t>(counter) + 256);
  counter = counter + 1;
}

__attribute__((noinline)) void work_inside() {
  while (counter >= 0) counter = counter + 1 - counter % 2;
}
__attribute__((noinline)) void work_outside() {
  work_inside();
  counter = counter + 1;
}

namespace {

/// A process that is in a function of this program.
struct Busy {
  explicit Busy(const std::function<void()>& what) : pid(::fork()) {
    if (pid != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    what();
    ::_exit(0);
  }
  ~Busy() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

  /// Once its main thread sleeps, or runs.
  void until(char state) const {
    const auto deadline = steady_now() + std::chrono::seconds(20);
    for (;;) {
      const auto facts = read_thread(pid, pid);
      if (facts && facts->state == state && (state == 'R' || !facts->place.empty() || facts->call)) return;
      REQUIRE(steady_now() < deadline);
    }
  }

  int pid;
};

std::vector<std::string> functions_of(const std::vector<NativeFrame>& frames) {
  std::vector<std::string> names;
  for (const auto& frame : frames) names.push_back(frame.function.substr(frame.function.rfind(':') + 1));
  return names;
}

/// The functions of a child that waits in one of them.
std::vector<std::string> stack_of(NativeReader& reader, const std::function<void()>& what) {
  const Busy busy(what);
  busy.until('S');
  auto snapshot = snapshot_stack(busy.pid, busy.pid);
  REQUIRE(snapshot);
  return functions_of(reader.read(std::move(*snapshot)).value());
}

bool has_in_order(const std::vector<std::string>& names, const std::string& inner, const std::string& outer) {
  const auto first = std::ranges::find(names, inner);
  return first != names.end() && std::find(first, names.end(), outer) != names.end();
}

}  // namespace

TEST_CASE("names of functions are said in a few words") {
  CHECK(plain_name("main") == "main");
  CHECK(plain_name("Trainer::step(char const*)") == "Trainer::step");
  CHECK(plain_name("(anonymous namespace)::step(int)") == "step");
  CHECK(plain_name("a::(anonymous namespace)::B<int>::step(int) const") == "a::B::step");
  CHECK(plain_name("void std::__invoke_impl<void, void (*&)()>(std::__invoke_other, void (*&)())") ==
        "std::__invoke_impl");
  CHECK(plain_name("std::enable_if<is_invocable_r_v<void, void (*&)()>, void>::type std::__invoke_r<void>(int)") ==
        "std::__invoke_r");
  CHECK(plain_name("std::function<void ()>::operator()() const") == "std::function::operator()");
  CHECK(plain_name("std::ostream& operator<< <int>(std::ostream&, A<int> const&)") == "operator<< <int>");
  CHECK(plain_name("main::{lambda()#1}::operator()() const") == "main::{lambda}");
  CHECK(plain_name("A::operator bool() const") == "A::operator bool");
  CHECK(plain_name("operator new(unsigned long)") == "operator new");
  CHECK(plain_name("") == "");
  CHECK(plain_name("a<b<c>") == "a");
  CHECK(plain_name("operator") == "operator");
}

TEST_CASE("a thread that waits is read without being stopped") {
  auto reader = NativeReader::load();
  if (!reader) SKIP_TEST(reader.error().message);
  const auto names = stack_of(*reader, wait_outside);
  CHECK(has_in_order(names, "wait_inside", "wait_outside"));
  CHECK(has_in_order(names, "wait_outside", "main"));
}

TEST_CASE("a function that uses a frame pointer has a caller") {
  auto reader = NativeReader::load();
  if (!reader) SKIP_TEST(reader.error().message);
  CHECK(has_in_order(stack_of(*reader, wait_outside_of_it), "wait_with_frame_pointer", "wait_outside_of_it"));
}

TEST_CASE("a thread that runs is sampled") {
  auto reader = NativeReader::load();
  if (!reader) SKIP_TEST(reader.error().message);
  const Busy busy(work_outside);
  busy.until('R');
  auto snapshot = snapshot_stack(busy.pid, busy.pid);
  REQUIRE(snapshot);
  auto frames = reader->read({busy.pid, busy.pid});
  const auto is_at_work = [&] { return has_in_order(functions_of(*frames), "work_inside", "work_outside"); };
  const auto deadline = steady_now() + std::chrono::seconds(20);  // it runs before it is at work, too
  while (frames && !is_at_work() && steady_now() < deadline) frames = reader->read({busy.pid, busy.pid});
  if (!frames) {
    CHECK(contains(frames.error().message, "perf_event_paranoid"));
    SKIP_TEST("the kernel does not let threads be sampled");
  }
  CHECK(is_at_work());
}

TEST_CASE("a process that has ended has no stack") {
  CHECK_FALSE(snapshot_stack(1 << 30, 1 << 30));
  auto reader = NativeReader::load();
  if (!reader) SKIP_TEST(reader.error().message);
  const auto frames = reader->read({1 << 30, 1 << 30, 4096, 4096, std::string(64, '\0')});
  CHECK((frames && frames->empty()));
}

TEST_CASE("bytes that are no stack make no frames of it, and no crash") {
  auto reader = NativeReader::load();
  if (!reader) SKIP_TEST(reader.error().message);
  const Busy busy(wait_outside);
  busy.until('S');
  const auto real = snapshot_stack(busy.pid, busy.pid);
  REQUIRE(real);
  for (unsigned seed = 0; seed < 20; ++seed) {
    auto damaged = *real;
    for (std::size_t i = 0; i < damaged.stack.size(); ++i) {
      damaged.stack[i] = static_cast<char>((i * 2654435761U + seed * 40503U) >> (seed % 13));
    }
    const auto frames = reader->read(std::move(damaged));
    CHECK((frames && frames->size() < 1000));
  }
}

}  // namespace native_stacks_test
