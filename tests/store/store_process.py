"""A store server of ours as a child process, for the tests with real clients."""

import subprocess
import threading


class StoreProcess:
    """Runs until closed; `lines` collects what it says after its port ("joined <rank>", "refused <why>")."""

    def __init__(self, executable):
        self._process = subprocess.Popen([executable], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self._process.stdout.readline())
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self):
        for line in self._process.stdout:
            self.lines.append(line.strip())

    def close(self):
        self._process.stdin.close()
        self._reader.join()
        return self._process.wait(60)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
