"""Forks of a data worker."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from typing import Any, Callable, NoReturn

import torch
from torch.utils.data._utils import MP_STATUS_CHECK_INTERVAL


def described(status: int) -> str:
    """How a process ended, by what waitpid() said."""
    code = os.waitstatus_to_exitcode(status)
    if code == -signal.SIGKILL:
        return "was killed by SIGKILL (out of memory, perhaps)"
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"


def forked(run: Callable[[], None]) -> int:
    """The process id of a fork in which `run` is called, and which ends when that returns.

    To its code it is what a worker process of torch is: a daemonic process of multiprocessing, whose hooks after a fork
    and at the end have run.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    process = multiprocessing.Process(target=_run_and_leave, args=(run,), daemon=True)
    pid = os.fork()
    if pid == 0:
        _child(process)
    return pid


def _child(process: Any) -> NoReturn:
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        begin_as_torch_does()
        code = process._bootstrap(_parent())
    finally:
        os._exit(code)


def begin_as_torch_does() -> None:
    """What torch's own workers do first: a line for a SIGSEGV, SIGBUS or SIGFPE, and one thread for torch's work."""
    torch._C._set_worker_signal_handlers()
    torch.set_num_threads(1)


def _parent() -> int | None:
    """Readable once the parent has ended: what multiprocessing.parent_process() waits for."""
    try:
        return os.pidfd_open(os.getppid())
    except OSError:
        return None


def _run_and_leave(run: Callable[[], None]) -> None:
    """What is to be done at the end has as long as torch gives it: queues are flushed, threads are waited for."""
    try:
        run()
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(MP_STATUS_CHECK_INTERVAL))
