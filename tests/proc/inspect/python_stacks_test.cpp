#include "proc/inspect/python_stacks.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>

#include "proc/inspect/interpreters.hpp"

namespace python_stacks_test {

using namespace taas;
using namespace taas::test;

namespace {

constexpr auto kPatience = std::chrono::seconds(30);  // for what a failing test alone waits for

/// "3.11 4711 Trainer.step train.py 12", a frame a line, as the process itself sees it or as it was read.
using Lines = std::vector<std::string>;

/// Beside the threads of the test it has one that says, when asked by a line, where all the others are.
constexpr const char* kPrelude = R"(
import os, sys, threading
def line_of(thread, frame):
    code = frame.f_code
    name = getattr(code, 'co_qualname', code.co_name)
    return '%d %s %s %d' % (thread, name, code.co_filename, frame.f_lineno or 0)
def tell():
    for _ in sys.stdin:
        ids = {t.ident: t.native_id for t in threading.enumerate()}
        ids[threading.main_thread().ident] = os.getpid()  # threading does not learn of a fork
        frames = {ids.get(i, 0): f for i, f in sys._current_frames().items() if i != threading.get_ident()}
        lines = []
        for thread in sorted(frames, key=lambda t: (t != os.getpid(), t)):
            frame = frames[thread]
            while frame:
                lines.append(line_of(thread, frame))
                frame = frame.f_back
        print('\n'.join(lines + ['.']), flush=True)
    os._exit(0)
def start(target):
    threading.Thread(target=target, daemon=True).start()
def begin():
    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    print('%d %d' % (os.getpid(), teller.native_id), flush=True)
)";

constexpr const char* kScenarios = R"(
import asyncio, importlib.util, os, sys, threading, time
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from prelude import begin, start
from other_module import Outer, call_back
import é_latin, 日本
spec = importlib.util.spec_from_file_location('wide', os.path.join(sys.path[0], '😀.py'))  # that is no identifier
wide = importlib.util.module_from_spec(spec)
spec.loader.exec_module(wide)

never = threading.Lock()
never.acquire()

def wait_here():
    never.acquire()

def nested():
    call_back(lambda: call_back(
        time.sleep if False else wait_in_sleep))
def wait_in_sleep():
    time.sleep(
        100000)

def threads():
    start(wait_here)
    start(lambda: call_back(wait_here))
    Outer().Inner().method(wait_here)

def generator():
    def numbers():
        yield 1
        yield from more()
    def more():
        yield 2
        wait_here()
    for _ in numbers():
        pass

def coroutine():
    async def inner():
        await asyncio.sleep(0)
        wait_here()
    async def outer():
        await asyncio.gather(inner(),
                             inner())
    asyncio.run(outer())

def comprehension():
    return [{k: sum(wait_here() or x for x in [1]) for k in
             range(2)}
            for _ in [1]]

def recursion(depth=200):
    if depth == 0:
        wait_here()
    recursion(depth - 1)

def names():
    é_latin.été(日本.関数, wide.call, wait_here)

def multi_line():
    print(
        1 if not never else
        Outer.static(
            wait_here,

            5,
        ),
        file=sys.stderr)

def handlers():
    try:
        1 / 0
    except ZeroDivisionError:
        with never_mind() as x:
            for i in range(3):
                if i == 2: wait_here()
class never_mind:
    def __enter__(self): pass
    def __exit__(self, *a):
        pass

class Descriptor:
    @property
    def value(self):
        return sorted([2, 1], key=lambda x: wait_here())
    def __eq__(self, other):
        return self.value
def out_of_c():
    exec(compile('\n\n[Descriptor()].index(5)', '<generated code>', 'exec'))

def traced():
    sys.settrace(lambda *a: None)
    wait_here()

class Often:
    def __init__(self, wait):
        if wait: wait_here()
def constructor():
    for i in range(100):
        Often(i == 99)

def loaded():
    big = {}
    exec('def big(f):\n' + ''.join(' a%d = %d\n' % (i, i) for i in range(70000)) + ' f()\n a = 1\n', big)
    big['big'](wait_here)

if sys.argv[1] != 'forked':
    begin()
    globals()[sys.argv[1]]()
else:
    def fork():
        if os.fork() == 0:
            begin()
            call_back(wait_here)
        os.wait()
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
)";

constexpr const char* kOtherModule = R"(
class Outer:
    class Inner:
        def method(self, f):
            return call_back(
                f)
    @staticmethod
    def static(f, number):
        return f()

def call_back(f):
    # a comment
    return f()
)";

/// The files of all scenarios, in a folder of their own.
struct Scenarios {
  Scenarios() {
    write("prelude.py", kPrelude);
    write("scenarios.py", kScenarios);
    write("other_module.py", kOtherModule);
    write("é_latin.py", "def été(f, *rest):\n    return f(*rest)\n");
    write("日本.py", "class 類:\n    @classmethod\n    def 関数(cls, f, *rest):\n        f(*rest)\n関数 = 類.関数\n");
    write("😀.py", "def call(f):\n\n    f()\n");
  }
  void write(const std::string& name, const char* text) const { std::ofstream(folder / name) << text; }
  TemporaryFolder folder;
};

PythonStacks read_stacks(PythonReader& reader, int pid, std::size_t most_frames = 48) {
  auto stacks = reader.read(pid, most_frames);
  INFO((stacks ? "" : stacks.error().message));
  REQUIRE(stacks.has_value());
  REQUIRE(stacks->has_value());
  return **stacks;
}

Lines to_lines(const PythonStacks& stacks, int left_out) {
  Lines lines;
  for (const auto& thread : stacks.threads) {
    if (thread.tid == left_out) continue;
    for (const auto& frame : thread.frames) {
      lines.push_back(std::to_string(thread.tid) + " " + frame.function + " " + frame.file + " " +
                      std::to_string(frame.line));
    }
  }
  return lines;
}

/// Each thread's frames up to so many.
Lines cut(const Lines& lines, std::size_t most_frames) {
  std::map<std::string, std::size_t> frames;
  Lines result;
  for (const auto& line : lines) {
    if (++frames[line.substr(0, line.find(' '))] <= most_frames) result.push_back(line);
  }
  return result;
}

int line_in_scenarios(const std::string& text) {
  const std::string all = kScenarios;
  return 1 + static_cast<int>(std::count(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.find(text)), '\n'));
}

/// One of the scenarios, in a state that it stays in.
class Scene {
 public:
  Scene(const Scenarios& scenarios, const std::string& python, const std::string& name, const std::string& innermost)
      : talk_({python, scenarios.folder / "scenarios.py", name}) {
    const auto first = talk_.hear();
    REQUIRE(std::sscanf(first.c_str(), "%d %d", &pid_, &teller_) == 2);
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    // Until all of its threads are there: they are asked again and again.
    for (Lines before; before.empty() || before != expected_ || !is_ready(innermost);) {
      before = std::exchange(expected_, ask());
      REQUIRE(std::chrono::steady_clock::now() < deadline);
    }
  }
  [[nodiscard]] int pid() const { return pid_; }
  [[nodiscard]] int teller() const { return teller_; }
  [[nodiscard]] const Lines& expected() const { return expected_; }

 private:
  Lines ask() {
    talk_.say("");
    Lines lines;
    for (auto line = talk_.hear(); line != "."; line = talk_.hear()) {
      REQUIRE_FALSE(line.empty());
      lines.push_back(line);
    }
    return lines;
  }
  /// Every thread is in its last function, and has begun it.
  [[nodiscard]] bool is_ready(const std::string& innermost) const {
    std::set<std::string> seen;
    return !expected_.empty() && std::all_of(expected_.begin(), expected_.end(), [&](const std::string& line) {
      const bool first_of_thread = seen.insert(line.substr(0, line.find(' '))).second;
      static const std::set<std::string> kDefinitions = {
          " " + std::to_string(line_in_scenarios("def wait_here():")),
          " " + std::to_string(line_in_scenarios("def wait_in_sleep():"))};
      const bool begun = std::none_of(kDefinitions.begin(), kDefinitions.end(),
                                      [&](const std::string& number) { return line.ends_with(number); });
      return !first_of_thread || (begun && line.find(" " + innermost + " ") != line.npos);
    });
  }

  Talk talk_;
  int pid_ = 0;
  int teller_ = 0;
  Lines expected_;
};

int minor_of(const std::string& python) {
  SpawnRequest request;
  request.argv = {python, "-c", "import sys; print(sys.version_info[1])"};
  request.environment = current_environment();
  return std::stoi(output_of(std::move(request)));
}

/// Changes as fast as it can: recursion, generators, threads that begin and end, and code that is made and forgotten.
/// Each call stands on a line of its own that names what it calls.
constexpr const char* kBusy = R"(
import os, sys, threading
def fib(n):
    if n < 2:
        return n
    return fib(n - 1) + \
        fib(n - 2)
def even(n):
    return n == 0 or odd(n - 1)
def odd(n):
    return n != 0 and even(n - 1)
def gen(n):
    for i in range(n):
        yield fib(i)
def walk_gen():
    for x in gen(6):
        even(x)
def short():
    even(60)
def churn():
    threads = []
    for i in range(4):
        threads.append(threading.Thread(target=short))
        threads[-1].start()
    for t in threads:
        t.join()
def made():
    names = {'fib': fib}
    exec('def fresh():\n    return fib(5)\n', names)
    names['fresh']()
def main():
    print(os.getpid(), flush=True)
    while True:
        fib(9)
        walk_gen()
        made()
        if sys.argv[1] == 'threads': churn()
main()
)";

/// Whether the outer frame's line is one that calls the inner function, by the text of the program.
bool calls(const std::vector<std::string>& source, const PythonFrame& outer, const PythonFrame& inner) {
  if (outer.line < 1 || static_cast<std::size_t>(outer.line) > source.size()) return false;
  const auto& line = source[static_cast<std::size_t>(outer.line) - 1];
  if (inner.function == "fresh") return line.find("['fresh']()") != line.npos;
  return line.find(inner.function + "(") != line.npos;
}

/// The first two frames beside each other of which one does not call the other; empty if there are none.
std::string find_nonsense(const std::vector<std::string>& source, const std::string& file, const PythonStacks& stacks) {
  static const std::set<std::string> kInside = {"fib",   "even",  "odd",  "gen", "walk_gen",
                                                "short", "churn", "made", "main"};
  for (const auto& thread : stacks.threads) {
    for (std::size_t i = 0; i < thread.frames.size(); ++i) {
      const auto& frame = thread.frames[i];
      auto text = frame.function + " " + frame.file + ":" + std::to_string(frame.line);
      if (frame.file == file && !kInside.contains(frame.function) && frame.function != "<module>") return text;
      if (frame.file != file && frame.file != "<string>" && frame.file.find("threading.py") == frame.file.npos &&
          frame.file.find("_weakrefset.py") == frame.file.npos && !frame.file.starts_with("<frozen")) {
        return text;
      }
      if (i + 1 == thread.frames.size()) continue;
      const auto& outer = thread.frames[i + 1];
      const bool both = (frame.file == file || frame.file == "<string>") && outer.file == file;
      if (both && frame.function != "<module>" && !calls(source, outer, frame)) {
        return text + " called by " + outer.function + ":" + std::to_string(outer.line);
      }
    }
  }
  return "";
}

struct Row {
  const char* scenario;
  const char* innermost;
};

constexpr std::array kRows = {
    Row{"nested", "wait_in_sleep"}, Row{"wait_here", "wait_here"},   Row{"threads", "wait_here"},
    Row{"generator", "wait_here"},  Row{"coroutine", "wait_here"},   Row{"comprehension", "wait_here"},
    Row{"recursion", "wait_here"},  Row{"names", "wait_here"},       Row{"multi_line", "wait_here"},
    Row{"handlers", "wait_here"},   Row{"out_of_c", "wait_here"},    Row{"traced", "wait_here"},
    Row{"loaded", "wait_here"},     Row{"constructor", "wait_here"}, Row{"forked", "wait_here"}};

}  // namespace

TEST_CASE("stacks are those that a traceback of the process itself shows") {
  const auto pythons = interpreters();
  if (pythons.empty()) SKIP_TEST("there is no python3 in PATH");
  Scenarios scenarios;
  PythonReader reader;
  for (const auto& python : pythons) {
    const auto minor = minor_of(python);
    for (const auto& row : kRows) {
      INFO(python << " " << row.scenario);
      Scene scene(scenarios, python, row.scenario, row.innermost);
      for (int time = 0; time < 2; ++time) {  // and again, by what is remembered
        const auto stacks = read_stacks(reader, scene.pid());
        CHECK(stacks.version == "3." + std::to_string(minor));
        CHECK(to_lines(stacks, scene.teller()) == cut(scene.expected(), 48));
        CHECK(stacks.threads.front().tid == scene.pid());
        CHECK(std::none_of(stacks.threads.begin(), stacks.threads.end(),
                           [&](auto& each) { return each.holds_gil && each.tid != scene.teller(); }));
      }
      CHECK(to_lines(read_stacks(reader, scene.pid(), 3), scene.teller()) == cut(scene.expected(), 3));
      CHECK(to_lines(read_stacks(reader, scene.pid(), 1000), scene.teller()) == scene.expected());
    }
  }
}

TEST_CASE("a stopped process is read like one that runs") {
  const auto pythons = interpreters();
  if (pythons.empty()) SKIP_TEST("there is no python3 in PATH");
  Scenarios scenarios;
  for (const auto& python : pythons) {
    INFO(python);
    Scene scene(scenarios, python, "threads", "wait_here");
    REQUIRE(::kill(scene.pid(), SIGSTOP) == 0);
    REQUIRE(::waitpid(scene.pid(), nullptr, WUNTRACED) == scene.pid());
    PythonReader reader;
    CHECK(to_lines(read_stacks(reader, scene.pid()), scene.teller()) == scene.expected());
  }
}

TEST_CASE("the thread that keeps the GIL in C is named") {
  const auto pythons = interpreters();
  if (pythons.empty()) SKIP_TEST("there is no python3 in PATH");
  constexpr const char* kHold = R"(
import ctypes, os, threading
libc = ctypes.PyDLL(None)
def other():
    never = threading.Lock()
    never.acquire()
    never.acquire()
def hold():
    print(os.getpid(), flush=True)
    libc.sleep(100000)
threading.Thread(target=other, daemon=True).start()
hold()
)";
  for (const auto& python : pythons) {
    INFO(python);
    Talk talk({python, "-c", kHold});
    const int pid = std::stoi(talk.hear());
    PythonReader reader;
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    PythonStacks stacks;
    auto is_there = [&] {
      const auto& main = stacks.threads.front();
      return stacks.threads.size() == 2 && main.holds_gil && main.frames.size() == 2 && main.frames[0].line == 10;
    };
    do stacks = read_stacks(reader, pid);
    while (!is_there() && std::chrono::steady_clock::now() < deadline);
    REQUIRE(is_there());
    CHECK(stacks.threads[0].frames[0].function == "hold");
    CHECK(stacks.threads[0].frames[1].function == "<module>");
    CHECK(stacks.threads[0].frames[1].line == 12);
    CHECK_FALSE(stacks.threads[1].holds_gil);
  }
}

TEST_CASE("a process that changes all the time is read without nonsense") {
  const auto pythons = interpreters();
  if (pythons.empty()) SKIP_TEST("there is no python3 in PATH");
  TemporaryFolder folder;
  const auto file = folder / "busy.py";
  std::ofstream(file) << kBusy;
  std::vector<std::string> source;
  for (auto line : split(kBusy, '\n')) source.emplace_back(line);
  for (const auto& python : pythons) {
    for (const char* what : {"calls", "threads"}) {
      INFO(python << " " << what);
      Talk talk({python, file, what});
      const int pid = std::stoi(talk.hear());
      PythonReader reader;
      int seen = 0;
      for (int time = 0; time < 2000; ++time) {
        auto stacks = reader.read(pid);
        if (!stacks) CHECK_THAT(stacks.error().message, ContainsSubstring("could not be read"));
        if (!stacks) continue;
        REQUIRE(stacks->has_value());
        INFO("read " << time);
        REQUIRE(find_nonsense(source, file, **stacks) == "");
        ++seen;
      }
      CHECK(seen > 1900);
    }
  }
}

TEST_CASE("a process that ends meanwhile ends the reading of it") {
  const auto pythons = interpreters();
  if (pythons.empty()) SKIP_TEST("there is no python3 in PATH");
  for (const auto& python : pythons) {
    INFO(python);
    Talk talk({python, "-c", "import os, sys\nprint(os.getpid(), flush=True)\nsys.stdin.read()"});
    const int pid = std::stoi(talk.hear());
    PythonReader reader;
    CHECK(read_stacks(reader, pid).threads.size() == 1);
    talk.end_input();
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    auto stacks = reader.read(pid);
    while ((stacks || stacks.error().message.find("made no sense") != std::string::npos) &&
           std::chrono::steady_clock::now() < deadline) {
      stacks = reader.read(pid);
    }
    REQUIRE_FALSE(stacks.has_value());
    CHECK(stacks.error().code == ErrorCode::kUnavailable);
    CHECK_THAT(stacks.error().message, ContainsSubstring("process " + std::to_string(pid) + " has ended"));
    talk.kill();
    CHECK_THAT(reader.read(pid).error().message, ContainsSubstring("has ended"));
  }
}

TEST_CASE("a process that runs no Python has no stacks, and one that begins or ends to run it is taken as it is") {
  PythonReader reader;
  Talk sleep({"/bin/sleep", "100000"});
  auto none = reader.read(sleep.pid());
  REQUIRE(none.has_value());
  CHECK_FALSE(none->has_value());
  const auto pythons = interpreters();
  if (pythons.empty()) SKIP_TEST("there is no python3 in PATH");
  for (const auto& python : pythons) {
    INFO(python);
    Talk talk({"/bin/sh", "-c",
               "echo shell; read line; exec \"$0\" -c \"import os\nprint('python', flush=True)\ninput()\n"
               "os.execlp('sh', 'sh', '-c', 'echo shell; read line')\"",
               python});
    REQUIRE(talk.hear() == "shell");
    CHECK_FALSE(reader.read(talk.pid()).value().has_value());
    talk.say("");
    REQUIRE(talk.hear() == "python");
    CHECK(read_stacks(reader, talk.pid()).threads.at(0).frames.at(0).function == "<module>");
    talk.say("");
    REQUIRE(talk.hear() == "shell");
    CHECK_FALSE(reader.read(talk.pid()).value().has_value());
  }
}

TEST_CASE("another user's process is not read, and the error says so") {
  if (::geteuid() != 0) SKIP_TEST("only root can become another user");
  Talk sleep({"/bin/sleep", "100000"});
  auto pipe = make_pipe().value();
  const int pid = ::fork();
  REQUIRE(pid >= 0);
  if (pid == 0) {
    if (::setgid(65534) != 0 || ::setuid(65534) != 0) ::_exit(2);
    auto stacks = PythonReader().read(sleep.pid());
    (void)write_all(pipe.write, stacks ? "read" : stacks.error().message);
    ::_exit(0);
  }
  pipe.write.reset();
  const auto said = read_to_end(pipe.read);
  ::waitpid(pid, nullptr, 0);
  CHECK_THAT(said, ContainsSubstring("cannot read the memory of process " + std::to_string(sleep.pid())));
  CHECK_THAT(said, ContainsSubstring("it is of user 0"));
  CHECK_THAT(said, ContainsSubstring("CAP_SYS_PTRACE"));
}

}  // namespace python_stacks_test
