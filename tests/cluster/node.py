"""One machine of a test cluster: a process tree in namespaces of its own (network, host name, mounts, processes, IPC).

Nothing of it has to be cleaned up: the first process of the tree dies with the test process, whatever ends that, and
the kernel then ends every other process of the tree and removes its network.
"""

import os
import pathlib
import signal
import subprocess

from processes import (
    Process,
    alive_in,
    command_line,
    die_with_the_test,
    environment_of_a_user,
    only_child,
    send,
    wait_until,
)

# The first process of a node. It reaps what is orphaned to it.
# Arguments: host name, then pairs SOURCE TARGET of mounts.
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
            [
                "unshare",
                "--net",
                "--uts",
                "--ipc",
                "--mount",
                "--pid",
                "--fork",
                "--kill-child=KILL",
                "--mount-proc",
                "sh",
                "-c",
                BOOT,
                "boot",
                name,
                *words,
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            preexec_fn=die_with_the_test,
        )
        if self._outer.stdout.readline() != "ready\n":
            self.stop()
            raise RuntimeError(f"node {name} did not start: {(folder / 'node.log').read_text()}")
        self.pid = only_child(self._outer.pid)  # of the node's first process
        self._first = {self.pid}
        self._namespace = os.readlink(f"/proc/{self.pid}/ns/pid")

    def start(self, *argv, env=None, cwd=None, **options) -> Process:
        """Starts a command on this node, in `cwd` (default: the user's home)."""
        options = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.PIPE,
            "text": True,
            **options,
        }
        # Who enters a namespace of processes has to fork. nsenter would, but it stops when its child does, and nobody
        # continues it; timeout (0: none) only waits, and ends as its child did.
        inside = [
            "nsenter",
            f"--target={self.pid}",
            "--net",
            "--uts",
            "--ipc",
            "--mount",
            "--root",
            "--pid",
            "--no-fork",
            "timeout",
            "--foreground",
            "0",
            "env",
            f"--chdir={cwd or self.home}",
            "--",
            *map(str, argv),
        ]
        return Process(inside, env={**environment_of_a_user(), "HOME": str(self.home), **(env or {})}, **options)

    def run(self, *argv, **options) -> subprocess.CompletedProcess:
        return self.start(*argv, **options).end()

    def check(self, *argv, **options) -> str:
        """Runs a command of the test's own that has to succeed; returns its output."""
        result = self.run(*argv, **options)
        assert result.returncode == 0, f"{self.name}: {argv} returned {result.returncode}\n{result.stderr}"
        return result.stdout

    def daemon(self, *argv, log: str, **options) -> Process:
        """Starts a command of the cluster itself: processes() does not list it nor what becomes of it."""
        with open(self.folder / log, "ab") as output:
            process = self.start(*argv, stdout=output, stderr=output, **options)
        self._first.add(wait_until(lambda: only_child(process.pid), f"{argv[0]} runs"))
        return process

    def processes(self, *patterns: str) -> dict:
        """Pid (as the test sees it) → command line, of what tests started here and is alive.

        With patterns only of those that contain one of them.
        """
        lines = {pid: command_line(pid) for pid in alive_in(self._namespace) if not self._is_infrastructure(pid)}
        return {pid: line for pid, line in lines.items() if not patterns or any(p in line for p in patterns)}

    def signal_all(self, number: int, *patterns: str) -> list:
        """A signal to the processes with a pattern in their command line; returns their pids."""
        found = list(self.processes(*patterns))
        for pid in found:
            send(pid, number)
        return found

    def kill_all(self, *patterns: str) -> list:
        """SIGKILL to these processes, all at once: stopped first, so that none sees another one's death."""
        found = self.signal_all(signal.SIGSTOP, *patterns)
        for pid in found:
            send(pid, signal.SIGKILL)
        return found

    def crash(self):
        """The machine is gone at once: its processes, and its network without a farewell."""
        if self._outer.poll() is None:
            send(only_child(self._outer.pid) or self._outer.pid, signal.SIGKILL)
        self._outer.wait()

    def listening(self) -> set:
        """(address, port) of each TCP socket that listens on this node."""
        lines = self.check("ss", "--no-header", "--tcp", "--listening", "--numeric").splitlines()
        places = [line.split()[3].rsplit(":", 1) for line in lines]
        return {(host.strip("[]").split("%")[0], int(port)) for host, port in places}

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
        line = command_line(pid)
        return pid in self._first or line in SERVICES or line.startswith(("sshd:", "sshd-session:", "sshd-auth:"))
