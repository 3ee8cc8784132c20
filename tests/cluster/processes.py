"""Processes as a test sees them: started on a node with an end in sight, found in /proc, waited for."""

import ctypes
import os
import pathlib
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
from waiting import DEADLINE_SECONDS, is_gone, wait_until  # noqa: F401

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


class Process(subprocess.Popen):
    """A command on a node. Signals go to the command, not to the process in front of it, which waits for its end."""

    def send_signal(self, number):
        child = only_child(self.pid)
        if child and self.poll() is None:
            os.kill(child, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def end(self) -> subprocess.CompletedProcess:
        """Waits for the end; a command that does not come to one fails the test with what it has printed."""
        try:
            out, err = self.communicate(timeout=DEADLINE_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            out, err = self.communicate()
            raise AssertionError(
                f"{self.args} did not end in {DEADLINE_SECONDS} s\nstdout: {out}\nstderr: {err}"
            ) from None
        return subprocess.CompletedProcess(self.args, self.returncode, out, err)


def send(pid: int, number: int):
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def only_child(pid: int):
    try:
        children = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return None
    return int(children[0]) if children else None


def command_line(pid: int) -> str:
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_text(errors="replace").replace("\0", " ").strip()
    except OSError:
        return ""


def alive_in(namespace: str) -> list:
    return [int(name) for name in os.listdir("/proc") if name.isdigit() and _is_alive_in(int(name), namespace)]


def _is_alive_in(pid: int, namespace: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/ns/pid") == namespace and not is_gone(pid)
    except OSError:
        return False
