"""Data workers of tests: forks of a process that has imported torch, which takes each of them seconds else.

That process is forked from pytest's before any test module is imported. So a worker has of the program what it imports
itself, as a started one has.
"""

import contextlib
import faulthandler
import json
import os
import select
import signal
import socket
import sys
import threading

_PACKET = 1 << 20


class ForkedWorker:
    """What the tests use of subprocess.Popen."""

    def __init__(self, forks, pid):
        self._forks, self.pid, self._code = forks, pid, None
        self._handle, self._looking = os.pidfd_open(pid), threading.Lock()

    def __del__(self):
        os.close(self._handle)

    def fileno(self):
        """Readable once it has ended."""
        return self._handle

    def wait(self, timeout=None):
        assert select.select([self], [], [], timeout)[0], "the data worker does not end"
        with self._looking:  # a thread may start another one in its place: Run.keep()
            if self._code is None:
                self._code = self._forks.code_of(self.pid)
            return self._code

    def send_signal(self, number):
        """By the handle: a thread may have waited for it meanwhile, and another process have its id."""
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._handle, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


class Forks:
    """The process that forks workers. It ends with this one."""

    def __init__(self):
        self._requests, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._asking = threading.Lock()
        self._pid = os.fork()
        if self._pid == 0:
            self._requests.close()
            try:
                _serve(others)
            finally:
                os._exit(1)
        others.close()

    def start(self, environment, listener):
        """`python -m taas.worker` with these variables, which serves the socket `listener`."""
        listens = "{fd},-" if listener.family == socket.AF_INET else "-,{fd}"
        asked = {"environment": environment, "listens": listens, "folder": os.getcwd(), "path": sys.path}
        return ForkedWorker(self, self._ask(asked, [1, 2, listener.fileno()]))

    def code_of(self, pid):
        """How the worker has ended, which has."""
        return self._ask({"ended": pid}, [])

    def end(self):
        self._requests.shutdown(socket.SHUT_RDWR)  # a fork of this process may have it open still
        os.waitpid(self._pid, 0)

    def _ask(self, what, descriptors):
        with self._asking:
            socket.send_fds(self._requests, [json.dumps(what).encode()], descriptors)
            return int(self._requests.recv(64))


def _serve(requests):
    while True:
        asked, descriptors, *_ = socket.recv_fds(requests, _PACKET, 3)
        if not asked:
            os._exit(0)
        asked = json.loads(asked)
        if "ended" in asked:
            requests.send(str(os.waitstatus_to_exitcode(os.waitpid(asked["ended"], 0)[1])).encode())
            continue
        pid = os.fork()
        if pid == 0:
            requests.close()
            _work(asked, descriptors)
        for each in descriptors:
            os.close(each)
        requests.send(str(pid).encode())


def _work(asked, descriptors):
    code = 1
    try:
        os.setsid()
        faulthandler.disable()  # pytest's, whose handlers no started process has
        with open(os.devnull) as nothing:
            for target, source in enumerate([nothing.fileno(), *descriptors[:2]]):
                os.dup2(source, target)
        sys.stdin = open(0, closefd=False)
        sys.stdout, sys.stderr = (open(number, "w", buffering=1, closefd=False) for number in (1, 2))
        os.environ.clear()
        os.environ.update(asked["environment"], TAAS_DATA_LISTEN=asked["listens"].format(fd=descriptors[2]))
        os.chdir(asked["folder"])
        sys.path[:] = asked["path"]
        from taas.worker.worker import main

        main()
        code = 0
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
