"""Fixtures that drive the real taas-run. TAAS_REPEATS says how often each fault is repeated."""

import os
import pathlib
import subprocess
import sys
import uuid

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from free_port import free_port
from waiting import DEADLINE_SECONDS, wait_until

TAAS_RUN = os.environ["TAAS_RUN"]
RANK_PROGRAM = os.environ["TAAS_RANK_PROGRAM"]
REPEATS = int(os.environ.get("TAAS_REPEATS", "3"))
UNKNOWN_NAME = "x" * 64  # no part of a name is so long: no name server is asked, which might be slow or know it

repeated = pytest.mark.parametrize("attempt", range(REPEATS))


class Launcher:
    """Runs taas-run in a folder of its own, with an environment free of what the caller's launchers left."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        self.barrier = folder / "barrier"
        self.barrier.mkdir()
        self.started = []
        foreign = ("PET_", "SLURM_", "TORCHELASTIC_", "TAAS_")
        names = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"}
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(foreign) and k not in names}
        self.environment["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"

    def start(self, *arguments, env=None, before=(), **options) -> subprocess.Popen:
        """`before`: words in front of taas-run, a program that starts it."""
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen(
            [*map(str, before), TAAS_RUN, *map(str, arguments)],
            cwd=self.folder,
            text=True,
            env={**self.environment, **(env or {})},
            **options,
        )
        self.started.append(process)
        return process

    def end_all(self):
        """After a test that failed half-way: whatever it started ends with its launcher."""
        for process in self.started:
            if process.poll() is None:
                process.kill()
                process.wait()

    def run(self, *arguments, env=None, **options) -> subprocess.CompletedProcess:
        process = self.start(*arguments, env=env, **options)
        try:
            out, err = process.communicate(timeout=DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            process.terminate()
            out, err = process.communicate()
            pytest.fail(f"taas-run did not end in {DEADLINE_SECONDS} s\nstdout: {out}\nstderr: {err}")
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def ranks(self, *actions) -> list:
        """The command of ranks that meet at a barrier and then do their actions."""
        return [RANK_PROGRAM, "--barrier", str(self.barrier), *actions]

    def python(self, text: str) -> str:
        script = self.folder / "script.py"
        script.write_text(text)
        return str(script)

    def run_folder(self) -> pathlib.Path:
        return (self.folder / "taas-runs" / "latest").resolve()

    def wait_for_ranks(self, count: int):
        ready = [self.barrier / f"ready-0-{rank}" for rank in range(count)]
        wait_until(lambda: all(path.exists() for path in ready), "all ranks are up")
        return [int(path.read_text()) for path in ready]


def own_namespaces(*kinds: str) -> list[str]:
    """Words in front of a command, which give it namespaces of these kinds.

    Root needs none of a user for them, and in a chroot it would get none.
    """
    words = ["unshare", *kinds] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", *kinds]
    if subprocess.run([*words, "true"], capture_output=True, timeout=DEADLINE_SECONDS).returncode != 0:
        pytest.skip(f"no {' '.join(kinds)} can be had here")
    return words


def own_mounts(script: str, *arguments) -> list:
    """Words in front of a command, which sees what a shell script has mounted; the arguments are its $1, $2, …"""
    run = f'{script}\nshift {len(arguments)}\nexec "$@"'
    words = [*own_namespaces("--mount"), "/bin/sh", "-ec", run, "sh", *map(str, arguments)]
    if subprocess.run([*words, "true"], capture_output=True, timeout=DEADLINE_SECONDS).returncode != 0:
        pytest.skip("nothing can be mounted here")
    return words


def with_driver(folder: pathlib.Path) -> dict[str, str]:
    """The environment of a machine whose driver's library is the one of the tests."""
    driver = folder / "driver"
    driver.mkdir()
    (driver / "libnvidia-ml.so.1").symlink_to(os.environ["TAAS_FAKE_NVML"])
    return {"LD_LIBRARY_PATH": f"{driver}:{os.environ.get('LD_LIBRARY_PATH', '')}"}


def agent_of(keeper: int) -> int:
    """The agent is the keeper's only child."""
    return int(pathlib.Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split()[0])


MEMORY_LIMIT = 512 << 20  # of which keeper, agent and three ranks under AddressSanitizer need a good part


@pytest.fixture
def memory_group():
    """A memory cgroup with that limit: a function that enters it."""
    for base, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        folder = pathlib.Path(base) / f"taas-test-{uuid.uuid4().hex[:8]}"
        try:
            folder.mkdir()
        except OSError:
            continue
        if (folder / limit).exists():
            break
        folder.rmdir()
    else:
        pytest.skip("no memory cgroup can be made here (needs root and the memory controller)")
    (folder / limit).write_text(str(MEMORY_LIMIT))
    yield lambda: (folder / "cgroup.procs").write_text(str(os.getpid()))
    wait_until(lambda: not (folder / "cgroup.procs").read_text().strip(), "the cgroup is empty")
    folder.rmdir()


@pytest.fixture
def launcher(tmp_path):
    launcher = Launcher(tmp_path)
    yield launcher
    launcher.end_all()


# --- of tests of torchrun's ways ---

TOUCH = (
    "import os, pathlib, sys\n"
    "assert os.environ['SENTINEL'] == 'parent'\n"
    "for name in ('RANK', 'WORLD_SIZE', 'LOCAL_RANK', 'LOCAL_WORLD_SIZE', 'GROUP_RANK', 'ROLE_RANK', 'ROLE_NAME',\n"
    "             'ROLE_WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT', 'TORCHELASTIC_RESTART_COUNT',\n"
    "             'TORCHELASTIC_MAX_RESTARTS', 'TORCHELASTIC_RUN_ID', 'TORCHELASTIC_USE_AGENT_STORE'):\n"
    "    assert os.environ[name], name\n"
    "pathlib.Path(sys.argv[1], os.environ['RANK']).write_text(' '.join(sys.argv[2:]))\n"
)
SHELL = (
    '#!/bin/sh\n[ "$SENTINEL" = parent ] || exit 9\necho "creating $1/$RANK"\n'
    'echo "warning of $RANK" >&2\n: > "$1/$RANK"\n'
)


@pytest.fixture
def touched(launcher) -> pathlib.Path:
    """Where every rank of `script` or `shell` leaves a file with its number."""
    launcher.environment["SENTINEL"] = "parent"
    folder = launcher.folder / "touched"
    folder.mkdir()
    return folder


@pytest.fixture
def script(launcher) -> str:
    return launcher.python(TOUCH)


@pytest.fixture
def shell(launcher) -> str:
    path = launcher.folder / "script.sh"
    path.write_text(SHELL)
    path.chmod(0o755)
    return str(path)


def assert_ranks(touched: pathlib.Path, count: int):
    found = {path.name for path in touched.iterdir()}
    assert found == {str(rank) for rank in range(count)}
    for path in touched.iterdir():
        path.unlink()


def succeeds(launcher, *arguments, env=None):
    result = launcher.run(*arguments, env=env)
    assert result.returncode == 0, result.stderr
    return result


def join_alone(launcher, *arguments, **environment):
    return launcher.run(
        "--nnodes=1:2",
        "--nproc-per-node=1",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint=localhost:{free_port()}",
        "--rdzv-id=job8",
        "--rdzv-conf=join_timeout=20,last_call_timeout=0.1",
        *arguments,
        env=environment,
    )
