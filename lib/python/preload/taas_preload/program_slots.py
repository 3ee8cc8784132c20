"""Where Python keeps which program it is to run: a session's interpreter was started for none, and each rank puts its own there.

Python has read its command line into a structure (PyConfig) long before it imports `sitecustomize`, and looks into it again when
that is over, to run the program. Our stand-in's name is looked for in it, and the fields around are put in order as Python itself
would have them: so the rank's program is run by Python's own code, with none of ours below it. The order of the fields run_command,
run_module and run_filename is the same since they are there (Include/cpython/initconfig.h of CPython 3.8 to 3.14)."""

import ctypes
import os
import struct
import sys

_POINTER = struct.calcsize("P")
_MOST = 128  # fields: it has about a hundred
_MOST_OF_STATE = 1 << 20  # bytes of what Python keeps for the whole process
_LOWEST = 4096  # below are numbers, not addresses


class NotFound(Exception):
    """This Python keeps it elsewhere."""


class ProgramSlots:
    """Finds the fields, by the name of a program that is not there. NotFound."""

    def __init__(self, stand_in: str) -> None:
        self._memory = os.open("/proc/self/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            find = getattr(ctypes.pythonapi, "_Py_GetConfig", None)
            if find is None:
                raise NotFound
            find.restype = ctypes.c_void_p
            self._find(find(), _wide(stand_in))
            self._words = self._find_words()
        finally:
            os.close(self._memory)

    def _find(self, start: int, name: bytes) -> None:
        fields = struct.unpack(f"{_MOST}P", self._read(start, _MOST * _POINTER))
        names = [number for number, value in enumerate(fields) if self._read(value, len(name)) == name]
        lists = [value for value in fields if self._read(self._pointer_at(value), len(name)) == name]
        if len(names) != 1 or not lists or any(fields[names[0] - 2:names[0]]):
            raise NotFound
        self._file = start + names[0] * _POINTER
        self._lists = lists  # of arguments: the first of them says where modules are looked for

    def _find_words(self) -> int:
        """Where Python keeps what it was started with, for those who ask in C (Py_GetArgcArgv): a count and a list."""
        count, words = ctypes.c_int(), ctypes.c_void_p()
        ctypes.pythonapi.Py_GetArgcArgv(ctypes.byref(count), ctypes.byref(words))
        start = ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))
        at = self._read(start, _MOST_OF_STATE).find(struct.pack("nP", count.value, words.value))
        if at < 0 or at % _POINTER:
            raise NotFound
        return start + at

    def _pointer_at(self, address: int) -> int:
        text = self._read(address, _POINTER)
        return struct.unpack("P", text)[0] if text else 0

    def _read(self, address: int, count: int) -> bytes:
        """Nothing where there is no memory."""
        if not _LOWEST <= address < 1 << 63:
            return b""
        try:
            return os.pread(self._memory, count, address)
        except OSError:
            return b""

    def put_words(self, words: list[str]) -> None:
        """The whole command line. It is released by the C library's free(), if at all."""
        library = ctypes.CDLL(None)
        library.malloc.restype, library.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
        texts = [_wide(word) for word in words]
        addresses = [_filled(library.malloc(len(text)), text) for text in texts]
        array = struct.pack(f"{len(addresses)}P", *addresses)
        _set(self._words, len(words))
        _set(self._words + _POINTER, _filled(library.malloc(len(array)), array))

    def put(self, program: list[str]) -> None:
        """The words of a command behind Python's own options: "-m" or "-c" and what belongs to it, or a file; then arguments."""
        first = program[0]
        if first in ("-m", "-c"):
            field = self._file - (1 if first == "-m" else 2) * _POINTER
            _set(self._file, 0)
            _set(field, _copy(program[1] if first == "-m" else program[1] + "\n"))
            sys.argv[:] = [first, *program[2:]]
        else:
            _set(self._file, _copy(first if first.startswith("/") else f"{os.getcwd()}/{first}"))
            sys.argv[:] = program
        for address in self._lists:
            _set(address, _copy(first))


def _set(address: int, value: int) -> None:
    ctypes.c_void_p.from_address(address).value = value or None


def _copy(text: str) -> int:
    """In memory that Python releases itself."""
    words = _wide(text)
    python = ctypes.pythonapi
    python.PyMem_RawMalloc.restype, python.PyMem_RawMalloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    return _filled(python.PyMem_RawMalloc(len(words)), words)


def _filled(address: int | None, content: bytes) -> int:
    if not address:
        raise MemoryError
    ctypes.memmove(address, content, len(content))
    return address


def _wide(text: str) -> bytes:
    """As an array of wchar_t, which ends with a zero."""
    return text.encode("utf-32-le" if sys.byteorder == "little" else "utf-32-be", "surrogatepass") + b"\0" * 4
