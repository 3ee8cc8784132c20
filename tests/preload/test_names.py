"""What ps, top and nvidia-smi read of a rank: its command line, its name and its environment."""

import importlib.util
import os
import pathlib
import platform
import subprocess
import sys

import pytest

MODULES = "decimal"
HOST = platform.node().partition(".")[0]
TOLD = """
import os
print(open("/proc/self/cmdline").read().rstrip("\\0").split("\\0"))
print(open("/proc/self/comm").read().strip())
print(open("/proc/self/environ").read().split("\\0")[:-1] == [f"{name}={value}" for name, value in os.environ.items()])
"""
OWN = """
import os, subprocess, sys
from setproctitle import getproctitle, setproctitle
before = dict(os.environ)
for title in "mine", "a longer one " * 8, "short":
    setproctitle(title)
    print(open("/proc/self/cmdline").read().rstrip("\\0"), "|", open("/proc/self/comm").read().strip(), "|", getproctitle())
print(sys.argv, dict(os.environ) == before, subprocess.run("echo $RANK", shell=True, capture_output=True, text=True).stdout)
"""
# Refuses prctl(PR_SET_MM, …), as kernels without CONFIG_CHECKPOINT_RESTORE do, and becomes the command behind it.
REFUSING = """
import ctypes, os, struct, sys
number = {"x86_64": 157, "aarch64": 167}[os.uname().machine]
load, equal, end = 0x20, 0x15, 0x06
steps = [(load, 0, 0, 0), (equal, 0, 3, number), (load, 0, 0, 16), (equal, 0, 1, 35), (end, 0, 0, 0x00050000 | 22), (end, 0, 0, 0x7fff0000)]
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
library = ctypes.CDLL(None, use_errno=True)
assert library.prctl(38, 1, 0, 0, 0) == 0
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
assert library.prctl(22, 2, ctypes.c_void_p(ctypes.addressof(program)), 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.fixture
def titled(machine):
    del machine.environment["TAAS_TITLES"]
    return machine


@pytest.fixture(params=["preload", "session"])
def way(request, titled, make_session):
    """How ranks come out of an interpreter."""
    def words():
        in_session = request.param == "session"
        return ("--in", make_session(titled, "--preload", MODULES).name) if in_session else ("--preload", MODULES)
    return words


def script(machine, text):
    path = machine.folder / "train.py"
    path.write_text(text)
    return path


def test_a_rank_says_its_number_host_and_script(titled, way):
    path = script(titled, TOLD)
    run = titled.launch(*way(), "--nproc-per-node", 2, path, "--lr", "0.1")
    assert run.preloaded() == [True, True], run.console
    plain = titled.launch("--preload", "none", "--nproc-per-node", 1, path, "--lr", "0.1").output()[0].splitlines()
    for rank in range(2):
        words, name, same = run.output(rank)[0].splitlines()
        python, *others = eval(plain[0])
        assert eval(words) == [f"rank {rank} {HOST} train.py: {python}", *others], "what is looked for by a command line is found"
        assert (name, same) == (f"rank {rank} train.py", "True")


@pytest.mark.parametrize("words, program", [(["-m", "package.train"], "package.train"), (["python", "-c", TOLD], "-c"),
                                            (["python", "package/"], "package")], ids=["module", "text", "folder"])
def test_a_program_that_is_no_script(titled, way, words, program):
    (titled.folder / "package").mkdir()
    for name in "train", "__main__":
        (titled.folder / f"package/{name}.py").write_text(TOLD)
    run = titled.launch(*way(), "--nproc-per-node", 1, *words)
    assert run.preloaded() == [True], run.console
    assert f"'rank 0 {HOST} {program}: " in run.output()[0], run.output()


def test_an_own_title_takes_its_place(titled, way):
    found = importlib.util.find_spec("setproctitle")
    if found is None:
        pytest.skip("no setproctitle (pip install -r scripts/requirements-test.txt)")
    titled.environment["PYTHONPATH"] = str(pathlib.Path(found.origin).parents[1])
    path = script(titled, OWN)
    fresh, forked = (titled.launch(*mode, "--nproc-per-node", 1, path, "--some", "more words") for mode in (("--preload", "none"), way()))
    assert (fresh.preloaded(), forked.preloaded()) == ([False], [True]), forked.console
    assert forked.output() == fresh.output() and "mine | mine | mine" in forked.output()[0]


def test_children_and_further_memory(titled, way):
    """The kernel was told anew where the heap ends."""
    path = script(titled, "import ctypes, os, subprocess, sys\nlibrary = ctypes.CDLL(None)\nlibrary.malloc.restype = ctypes.c_void_p\n"
                          "for _ in range(100000):\n    assert ctypes.memset(library.malloc(ctypes.c_size_t(500)), 1, 500)\n"
                          "sys.exit(os.fork() and os.waitstatus_to_exitcode(os.wait()[1]) or subprocess.run('exit $RANK', shell=True).returncode)\n")
    run = titled.launch(*way(), "--nproc-per-node", 1, path)
    assert run.code == 0 and run.preloaded() == [True], run.console


def test_with_a_debugging_allocator(titled, way):
    """Python gives back the word that was changed by the same way as its own."""
    titled.environment["PYTHONMALLOC"] = "debug"
    run = titled.launch(*way(), "--nproc-per-node", 1, script(titled, TOLD))
    assert run.code == 0 and run.preloaded() == [True] and "rank 0" in run.output()[0], run.console
    assert run.output()[1] == ""


def test_a_kernel_that_does_not_let_us(titled):
    if platform.machine() not in ("x86_64", "aarch64"):
        pytest.skip("the number of the system call is not known here")
    path = script(titled, TOLD)
    command = [os.environ["TAAS_RUN"], "--preload", MODULES, "--nproc-per-node", "1", str(path)]
    done = subprocess.run([sys.executable, "-c", REFUSING, *command], cwd=titled.folder, env=titled.environment, capture_output=True,
                          text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    words, name, _ = done.stdout.splitlines()
    assert eval(words)[1:] == ["-u", str(path)] and not words.startswith("['rank"), words
    assert name == "rank 0 train.py"


def test_titles_can_be_left_out(machine):
    run = machine.launch("--preload", MODULES, "--nproc-per-node", 1, script(machine, TOLD))
    words, name, same = run.output()[0].splitlines()
    assert run.preloaded() == [True] and "rank 0" not in words and "rank" not in name and same == "True"
