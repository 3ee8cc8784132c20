"""System calls that Python has no function for."""

import ctypes
import os
import signal

_SET_PARENT_DEATH_SIGNAL = 1
_NO_NEW_PRIVILEGES = 38
_LANDLOCK_RESTRICT_SELF = 446  # the same number on every machine
_SET_MEMORY_POLICY = {"x86_64": 238, "aarch64": 237}
_LOCAL_MEMORY = 4  # MPOL_LOCAL
_library = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """The kernel ends this process with its parent. OSError, too, when the parent is another one."""
    _check(_library.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        raise ProcessLookupError(3, "the launcher has ended")


def bind_to(processors: list[int]) -> None:
    """This thread runs on these only, and its memory comes from the node that it runs on, as in numa.cpp."""
    os.sched_setaffinity(0, processors)
    call = _SET_MEMORY_POLICY.get(os.uname().machine)
    if call is not None:
        _library.syscall(call, _LOCAL_MEMORY, None, 0)


def restrict_to(rules: int) -> None:
    """Puts Landlock rules on this process, and closes their descriptor."""
    _check(_library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check(_library.syscall(_LANDLOCK_RESTRICT_SELF, rules, 0))
    os.close(rules)


def set_environment(entries: list[bytes]) -> None:
    """Takes the place of all that this process has.

    putenv() would refuse some of what a process can be started with.
    """
    array = (ctypes.c_char_p * (len(entries) + 1))(*entries, None)
    keep_for_ever(array)  # the C library reads it as long as the process lives
    ctypes.c_void_p.in_dll(_library, "environ").value = ctypes.addressof(array)


def keep_for_ever(thing: object) -> None:
    """The end of Python does not take it apart."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
