"""The benchmarks say in one line what they need, and go on where a process ends that they look at."""

import os
import pathlib
import signal
import subprocess
import sys
import time
import venv

import pytest

from conftest import ROOT

BENCH = ROOT / "apps/bench"
HANG = 300
BENCHMARKS = sorted(path for path in BENCH.rglob("*.py") if "measure.run(main)" in path.read_text())
# What is started by a benchmark, or imported.
PARTS = {"contenders.py", "endpoint.py", "measure.py", "nodes.py", "payloads.py", "prepared.py", "rank.py"}
WITHOUT_TORCH = {"many.py", "plot.py", "wheel.py"}
sys.path.insert(0, str(BENCH))

import measure  # noqa: E402


@pytest.fixture(scope="module")
def bare_python(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """An interpreter with the standard library alone."""
    folder = tmp_path_factory.mktemp("bare")
    venv.create(folder, with_pip=False, symlinks=True)
    return folder / "bin/python"


def run(*command: object) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run([str(word) for word in command], env=environment, capture_output=True, text=True, timeout=HANG)


def complaint(done: subprocess.CompletedProcess) -> str:
    """The one line of a benchmark that cannot begin."""
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    return line


def test_all_benchmarks_are_known():
    others = {path.name for path in BENCH.rglob("*.py") if path not in BENCHMARKS}
    assert {name for name in others if not name.endswith("_rank.py")} == PARTS
    assert len(BENCHMARKS) > 15


@pytest.mark.parametrize("path", [path for path in BENCHMARKS if path.name not in WITHOUT_TORCH], ids=lambda path: path.name)
def test_a_benchmark_without_torch_says_so(path: pathlib.Path, bare_python: pathlib.Path):
    if path.name == "into_gpu.py":  # may be told of another interpreter
        done = run(bare_python, path)
        assert done.returncode != 0 and "cannot import torch" in done.stderr and "Traceback" not in done.stderr
        return
    said = complaint(run(bare_python, path))
    assert said.startswith(f"{path.name}: ") and "torch" in said and " -m pip install " in said


def test_plotting_without_matplotlib_says_so(bare_python: pathlib.Path):
    assert "-m pip install matplotlib" in complaint(run(bare_python, BENCH / "data/plot.py", "a.json", "a.svg"))


def test_ways_that_need_another_package_say_which(bare_python: pathlib.Path, tmp_path: pathlib.Path):
    """Before anything is measured, and without being root. The interpreter has all that the other ways need."""
    pytest.importorskip("torch")
    packages = pathlib.Path(run(bare_python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").stdout.strip())
    for name in ("torch", "numpy"):
        (packages / f"{name}.py").write_text("")
    try:
        delivery = BENCH / "data/delivery.py"
        assert "-m pip install pyarrow tensorflow-cpu" in complaint(run(sys.executable, delivery, "--python", bare_python))
        assert "-m pip install pyarrow," in complaint(run(sys.executable, delivery, "--python", bare_python, "--only", "flight"))
        assert "no interpreter" in complaint(run(sys.executable, delivery, "--python", tmp_path / "nowhere"))
    finally:
        for name in ("torch", "numpy"):
            (packages / f"{name}.py").unlink()


@pytest.mark.skipif(os.geteuid() != 0, reason="root is who may become somebody else")
def test_nodes_of_their_own_need_root():
    pytest.importorskip("torch")
    for name in ("data/endure.py", "data/delivery.py", "many.py"):
        done = subprocess.run([sys.executable, "-c", "import os, runpy, sys; os.geteuid = lambda: 1000; sys.argv[:] = sys.argv[1:]; "
                               "sys.path.insert(0, os.path.dirname(sys.argv[0])); runpy.run_path(sys.argv[0], run_name='__main__')",
                               BENCH / name, *(["--only", "taas"] if "delivery" in name else [])], capture_output=True, text=True, timeout=HANG)
        assert "needs root: run it with sudo" in complaint(done)


def test_a_build_that_is_not_there_is_named(tmp_path: pathlib.Path):
    said = complaint(run(sys.executable, BENCH / "many.py", "--only", "ranks", "--bin", tmp_path))
    assert f"{tmp_path}/taas-run: not there" in said


def test_a_process_that_has_ended_has_no_facts():
    process = subprocess.Popen(["sleep", "600"])
    assert measure.of_process(process.pid, "comm").strip() in ("sleep", pathlib.Path(sys.executable).name)
    assert measure.family(process.pid) == [process.pid] and process.pid in measure.children(os.getpid())
    process.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert measure.pss_bytes(process.pid) == 0  # it waits to be reaped
    process.wait()
    assert measure.of_process(process.pid, "comm") == "" and measure.pss_bytes(process.pid) == 0
    assert measure.children(process.pid) == [] and measure.family(process.pid) == [process.pid]


def test_families_are_looked_at_while_they_end():
    """Shells whose children come and go all the time."""
    shell = subprocess.Popen(["bash", "-c", "while :; do /bin/true & /bin/true; done"])
    try:
        looks, seen, deadline = 0, 0, time.monotonic() + HANG
        while looks < 1000 or seen < 100:
            family = measure.family(shell.pid)
            looks, seen = looks + 1, seen + len(family) - 1
            assert sum(map(measure.pss_bytes, family)) >= 0
            assert time.monotonic() < deadline, f"{seen} children in {looks} looks"
        assert shell.poll() is None
    finally:
        shell.kill()
        shell.wait()


def test_a_server_that_ends_before_it_is_ready_is_named():
    process = subprocess.Popen(["sh", "-c", "exit 3"], stdout=subprocess.PIPE, text=True)
    with pytest.raises(SystemExit, match=r"^sh -c exit 3: ended with 3 before it was ready$"):
        measure.announced(process)


def test_what_a_process_was_to_do_is_not_waited_for_once_it_has_ended():
    process = subprocess.Popen(["false"])
    with pytest.raises(SystemExit, match="^all ranks are up: false ended with 1 before$"):
        measure.wait_until(lambda: False, "all ranks are up", process, HANG)


def test_a_program_that_fails_is_a_line():
    def fails():
        subprocess.run(["sh", "-c", "echo first >&2; echo why >&2; exit 4"], check=True, capture_output=True)

    with pytest.raises(SystemExit, match="exit 4: exit status 4: why$"):
        measure.run(fails)


def test_a_rank_that_is_gone_before_it_is_watched_is_no_sample(tmp_path: pathlib.Path):
    import stop
    gone = subprocess.Popen(["true"])
    gone.wait()
    launcher = subprocess.Popen(["sleep", "600"])
    try:
        for rank in range(measure.RANKS):
            (tmp_path / f"start-0-{rank}").write_text(f"1 {gone.pid if rank == 6 else os.getpid()}\n")
        before = len(os.listdir("/proc/self/fd"))
        assert stop.rank_processes(tmp_path, launcher) == []
        assert len(os.listdir("/proc/self/fd")) == before
    finally:
        launcher.kill()
        launcher.wait()
