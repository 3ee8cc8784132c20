"""A Jupyter kernel as a front end drives it: cells in, outputs out."""

import os
import pathlib
import signal
import uuid

from jupyter_client import KernelManager
from waiting import DEADLINE_SECONDS, wait_until


class Outcome:
    """What a cell has left behind."""

    def __init__(self, outputs, reply):
        self.outputs = outputs
        self.count = reply["execution_count"]
        self.error = reply if reply["status"] == "error" else None
        self.traceback = "\n".join(reply.get("traceback", ()))

    def stream(self, name="stdout"):
        return "".join(output["text"] for kind, output in self.outputs if kind == "stream" and output["name"] == name)

    def of(self, kind):
        return [output for one, output in self.outputs if one == kind]

    @property
    def result(self):
        """text/plain of what the cell's last expression displays."""
        found = self.of("execute_result")
        return found[0]["data"]["text/plain"] if found else None

    def check(self):
        assert self.error is None, f"{self.traceback}\n{self.stream('stderr')}"
        return self


class Kernel:
    """A kernel in `folder`; every process below it has a mark in its environment, by which it is found."""

    def __init__(self, folder: pathlib.Path, sockets: pathlib.Path):
        self.mark = uuid.uuid4().hex
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("RANK", "WORLD_SIZE", "SLURM_"))
        }
        environment |= {
            "TAAS_TEST_MARK": self.mark,
            "IPYTHONDIR": str(sockets / "ipython"),
            "HOME": str(sockets),
            "JUPYTER_RUNTIME_DIR": str(sockets),
            "XDG_CONFIG_HOME": str(sockets / "config"),
        }
        self._manager = KernelManager(transport="ipc", ip=str(sockets / "kernel"))
        self._manager.start_kernel(cwd=str(folder), env=environment)
        self.pid = self._manager.provisioner.process.pid
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=DEADLINE_SECONDS)

    def run(self, code: str, on_output=None) -> Outcome:
        """Runs a cell. `on_output` is called with each output as it comes."""
        request = self._client.execute(code, allow_stdin=False)
        outputs = []
        while True:
            message = self._client.get_iopub_msg(timeout=DEADLINE_SECONDS)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "idle":
                break
            outputs.append((kind, content))
            if on_output:
                on_output(kind, content)
        while True:
            reply = self._client.get_shell_msg(timeout=DEADLINE_SECONDS)
            if reply["parent_header"].get("msg_id") == request:
                return Outcome(outputs, reply["content"])

    def send(self, code: str):
        """Begins a cell whose end nobody waits for."""
        self._client.execute(code, allow_stdin=False)

    def next_text(self) -> str:
        """The next stream output; others are passed over."""
        while True:
            message = self._client.get_iopub_msg(timeout=DEADLINE_SECONDS)
            if message["msg_type"] == "stream":
                return message["content"]["text"]

    def interrupt(self):
        """The stop button."""
        self._manager.interrupt_kernel()

    def kill(self):
        """As the kernel does who kills for want of memory: no handler, no farewell."""
        os.kill(self.pid, signal.SIGKILL)

    def processes(self) -> list[int]:
        """All that the kernel has started, directly or not, and that live."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit() and int(entry.name) != self.pid and self._is_marked(entry):
                found.append(int(entry.name))
        return found

    def wait_for_no_process(self):
        wait_until(lambda: not self.processes(), "no process is left")

    def wait_for_processes(self, count: int):
        wait_until(lambda: len(self.processes()) >= count, f"{count} processes are there")

    def end(self):
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)

    def _is_marked(self, entry: pathlib.Path) -> bool:
        try:
            return f"TAAS_TEST_MARK={self.mark}".encode() in (entry / "environ").read_bytes()
        except (OSError, ProcessLookupError):
            return False
