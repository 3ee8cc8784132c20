"""One machine of a test cluster: a process tree in namespaces of its own (network, host name, mounts, processes, IPC).

Nothing of it has to be cleaned up: the first process of the tree dies with the test process, whatever ends that, and
the kernel then ends every other process of the tree and removes its network.
"""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys
import time

DEADLINE_SECONDS = 30

# The first process of a node. It reaps what is orphaned to it. Arguments: host name, then pairs SOURCE TARGET of mounts.
BOOT = """
set -e
hostname "$1"; shift
mount -t tmpfs tmpfs /run
while [ $# -gt 0 ]; do
  mount --bind "$1" "$2"; shift 2
done
ip link set lo up
echo ready
exec >/dev/null 2>&1
while :; do sleep infinity; done
"""

SERVICES = ("", "sleep infinity", ": slurmscriptd")  # what daemons start beside themselves

FOREIGN = ("PET_", "SLURM_", "TORCHELASTIC_", "TAAS_", "SSH_")
FOREIGN_NAMES = {"RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS"}
_libc = ctypes.CDLL(None, use_errno=True)


def die_with_the_test():
    """In a child before exec: SIGKILL when the test process is gone."""
    PR_SET_PDEATHSIG = 1
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def environment_of_a_user() -> dict:
    """The environment without what the caller's launchers left in it; python3 is the interpreter of the tests."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(FOREIGN) and k not in FOREIGN_NAMES}
    kept["PATH"] = f"{pathlib.Path(sys.executable).parent}:{kept['PATH']}"
    kept["CUDA_VISIBLE_DEVICES"] = ""
    return kept


def wait_until(condition, what: str, seconds: float = DEADLINE_SECONDS):
    """Waits for a condition of the outside world, with a deadline; returns what made it true."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.01)
    return answer


class Process(subprocess.Popen):
    """A command on a node. Signals go to the command, not to the nsenter in front of it."""

    def send_signal(self, number):
        child = _only_child(self.pid)
        if child and self.poll() is None:
            os.kill(child, number)
        if number == signal.SIGCONT:  # nsenter stops and goes on as its child does
            super().send_signal(number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def end(self) -> subprocess.CompletedProcess:
        """Waits for the end; a command that does not come to one fails the test with what it has printed."""
        return self.end_within(60)

    def end_within(self, seconds: float) -> subprocess.CompletedProcess:
        try:
            out, err = self.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.communicate()
            raise AssertionError(f"{self.args} did not end in {seconds} s\nstdout: {out}\nstderr: {err}") from None
        return subprocess.CompletedProcess(self.args, self.returncode, out, err)


class Node:
    """`folder` is for the node's own files; `mounts` are pairs (what, where) that only this node sees."""

    def __init__(self, name: str, folder: pathlib.Path, mounts=(), home=None):
        self.name = name
        self.folder = folder
        self.home = home or folder
        folder.mkdir(parents=True, exist_ok=True)
        words = [str(word) for pair in mounts for word in pair]
        self._log = open(folder / "node.log", "ab")
        self._outer = subprocess.Popen(
            ["unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc",
             "sh", "-c", BOOT, "boot", name, *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, text=True, preexec_fn=die_with_the_test)
        if self._outer.stdout.readline() != "ready\n":
            self.stop()
            raise RuntimeError(f"node {name} did not start: {(folder / 'node.log').read_text()}")
        self.pid = _only_child(self._outer.pid)  # of the node's first process
        self._first = {self.pid}
        self._namespace = os.readlink(f"/proc/{self.pid}/ns/pid")

    def start(self, *argv, env=None, cwd=None, **options) -> Process:
        """Starts a command on this node, in `cwd` (default: the user's home)."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                   **options}
        inside = ["nsenter", f"--target={self.pid}", "--net", "--uts", "--ipc", "--mount", "--pid",
                  "env", f"--chdir={cwd or self.home}", "--", *map(str, argv)]
        return Process(inside, env={**environment_of_a_user(), "HOME": str(self.home), **(env or {})}, **options)

    def run(self, *argv, seconds: float = 60, **options) -> subprocess.CompletedProcess:
        return self.start(*argv, **options).end_within(seconds)

    def check(self, *argv, **options) -> str:
        """Runs a command of the test's own that has to succeed; returns its output."""
        result = self.run(*argv, **options)
        assert result.returncode == 0, f"{self.name}: {argv} returned {result.returncode}\n{result.stderr}"
        return result.stdout

    def daemon(self, *argv, log: str, **options) -> Process:
        """Starts a command of the cluster itself: processes() does not list it nor what becomes of it."""
        with open(self.folder / log, "ab") as output:
            process = self.start(*argv, stdout=output, stderr=output, **options)
        self._first.add(wait_until(lambda: _only_child(process.pid), f"{argv[0]} runs"))
        return process

    def processes(self, *patterns: str) -> dict:
        """Pid (as the test sees it) → command line, of what tests started here and is alive; of those that contain one of
        the patterns, if there are any."""
        lines = {pid: _command_line(pid) for pid in _alive_in(self._namespace) if not self._is_infrastructure(pid)}
        return {pid: line for pid, line in lines.items() if not patterns or any(p in line for p in patterns)}

    def kill_all(self, *patterns: str) -> list:
        """SIGKILL to the processes with a pattern in their command line, all at once; returns their pids."""
        found = list(self.processes(*patterns))
        for number in (signal.SIGSTOP, signal.SIGKILL):  # stopped first: none sees another one's death
            for pid in found:
                _signal(pid, number)
        return found

    def crash(self):
        """The machine is gone at once: its processes, and its network without a farewell."""
        if self._outer.poll() is None:
            _signal(_only_child(self._outer.pid) or self._outer.pid, signal.SIGKILL)
        self._outer.wait()

    def listens_on(self, port: int) -> bool:
        """Whether a TCP socket listens there, by IPv4 or any."""
        tables = (pathlib.Path(f"/proc/{self.pid}/net/{name}").read_text() for name in ("tcp", "tcp6"))
        return any(f":{port:04X} " in line.split(" 0A ")[0] for table in tables for line in table.splitlines()
                   if " 0A " in line)

    def mount(self, source, target):
        """Puts another file or folder in a place, for this node only."""
        if pathlib.Path(source).is_dir():
            self.check("mkdir", "-p", target)
        self.check("mount", "--bind", source, target)

    def hide(self, folder):
        """An empty folder in place of one, for this node only."""
        self.check("mount", "-t", "tmpfs", "tmpfs", folder)

    def stop(self):
        self.crash()
        self._outer.stdout.close()
        self._log.close()

    def _is_infrastructure(self, pid: int) -> bool:
        line = _command_line(pid)
        return pid in self._first or line in SERVICES or line.startswith("sshd:")


def _signal(pid: int, number: int):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _only_child(pid: int):
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return None
    return int(children[0]) if children else None


def _command_line(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    except OSError:
        return ""


def is_gone(pid: int) -> bool:
    """True when the process has ended, be it as a zombie that nobody has reaped yet."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def _alive_in(namespace: str) -> list:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_alive_in(int(name), namespace)]


def _is_alive_in(pid: int, namespace: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == namespace and not is_gone(pid)
    except OSError:
        return False
