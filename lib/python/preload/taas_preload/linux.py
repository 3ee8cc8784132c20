"""System calls that Python has no function for."""

import ctypes
import os
import signal
import struct

_SET_PARENT_DEATH_SIGNAL = 1
_SET_NAME, _GET_NAME = 15, 16
_SET_CHILD_SUBREAPER = 36
_SET_MEMORY_MAP, _WHOLE_MAP = 35, 14  # PR_SET_MM, PR_SET_MM_MAP: needs no rights, but a kernel with CONFIG_CHECKPOINT_RESTORE
_MAP, _SAME_PROGRAM = struct.Struct("=12QII"), 0xFFFFFFFF  # struct prctl_mm_map
_END_OF_HEAP, _END_OF_HEAP_AT = struct.Struct("=Q"), 5 * 8  # its sixth field
_NO_NEW_PRIVILEGES = 38
_LANDLOCK_RESTRICT_SELF = 446  # the same number on every machine
_library = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """The kernel ends this process with its parent. OSError, too, when the parent is another one."""
    _check(_library.prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0))
    if os.getppid() != parent:
        raise ProcessLookupError(3, "the launcher has ended")


def adopt_orphans() -> None:
    """What loses its parent below this process becomes its child."""
    _check(_library.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0))


def execute(program: bytes, words: list[bytes], entries: list[bytes]) -> None:
    """With an environment that Python could not have. OSError; else it does not return."""
    _library.execve(program, _array(words), _array(entries))
    _check(-1)


def _array(texts: list[bytes]) -> ctypes.Array:  # type: ignore[type-arg]
    return (ctypes.c_char_p * (len(texts) + 1))(*texts, None)


def restrict_to(rules: int) -> None:
    """Puts Landlock rules on this process, and closes their descriptor."""
    _check(_library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    _check(_library.syscall(_LANDLOCK_RESTRICT_SELF, rules, 0))
    os.close(rules)


def set_name(name: bytes) -> bytes:
    """What top shows; the kernel cuts it to 15 bytes. Returns what it was."""
    before = ctypes.create_string_buffer(16)
    _library.prctl(_GET_NAME, before, 0, 0, 0)
    _library.prctl(_SET_NAME, name, 0, 0, 0)
    return before.value


def place(words: list[bytes], entries: list[bytes]) -> bool:
    """Makes these the environment of this process, in place of all that it has, and returns whether the kernel shows them, and the
    words as the command line. putenv() would refuse some of what a process can be started with."""
    lengths = [len(word) + 1 for word in words + entries]
    memory = ctypes.create_string_buffer(b"".join(word + b"\0" for word in words + entries))
    places = [ctypes.addressof(memory)]
    for length in lengths:
        places.append(places[-1] + length)
    variables = (ctypes.c_void_p * (len(entries) + 1))(*places[len(words):-1], None)
    for kept in memory, variables:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))  # they are read as long as the process lives
    ctypes.c_void_p.in_dll(_library, "environ").value = ctypes.addressof(variables)
    return _show(places[0], places[len(words)], places[-1])


def _show(words: int, entries: int, end: int) -> bool:
    """The rest of the process's map is as it was; the numbers are those of proc(5)."""
    try:
        with open("/proc/self/stat", "rb") as file:
            fields = [b"", b"", b"", *file.read().rpartition(b")")[2].split()]
    except OSError:
        return False
    code, end_of_code, stack, data, end_of_data, heap = (int(fields[number]) for number in (26, 27, 28, 45, 46, 47))
    _library.sbrk.restype, _library.sbrk.argtypes = ctypes.c_void_p, [ctypes.c_ssize_t]
    wanted = ctypes.create_string_buffer(_MAP.pack(code, end_of_code, data, end_of_data, heap, 0, stack, words, entries, entries, end,
                                                   0, 0, _SAME_PROGRAM), _MAP.size)
    arguments = tuple(map(ctypes.c_ulong, (_WHOLE_MAP, ctypes.addressof(wanted), _MAP.size, 0)))
    end_of_heap, shown = None, False
    while end_of_heap != (now := _library.sbrk(0)):  # once more where these calls themselves have moved it
        _END_OF_HEAP.pack_into(wanted, _END_OF_HEAP_AT, now)
        end_of_heap, shown = now, _library.prctl(_SET_MEMORY_MAP, *arguments) == 0
    return shown


def _check(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
