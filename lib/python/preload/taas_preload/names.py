"""How ps, top and nvidia-smi tell a rank from the others: its command line is this process's own, and begins with its number."""

import ctypes
import os

from . import linux
from .settings import Settings

_SWITCH = b"TAAS_TITLES"


def take(words: list[bytes], entries: list[bytes], settings: Settings) -> None:
    """Puts the words of the command and the environment into memory in the order in which a process is started with them, and tells
    the kernel that they are there. Where it does not let us, the kernel goes on showing those of the interpreter.

    The order is what setproctitle() goes by: from the first variable it looks back over as many words as Python has been given, and
    the first of them has to be Python's own first word, which is therefore changed along with it. So a program's own title takes the
    place of ours as a whole."""
    variables = dict(entry.partition(b"=")[::2] for entry in reversed(entries))  # of a name that is there twice, the first counts
    titled = [_title(words, variables, settings), *words[1:]] if variables.get(_SWITCH) != b"0" else words
    shown = linux.place(titled, entries)
    if titled is words:
        return
    if shown:
        _change_first_word(titled[0])
    linux.set_name(b"rank %s %s" % (variables.get(b"RANK", b"?"), _program(words, settings)))


def _title(words: list[bytes], variables: dict[bytes, bytes], settings: Settings) -> bytes:
    host = os.fsencode(os.uname().nodename.partition(".")[0])
    return b"rank %s %s %s: %s" % (variables.get(b"RANK", b"?"), host, _program(words, settings), words[0])


def _program(words: list[bytes], settings: Settings) -> bytes:
    """The script's file name, the module, or "-c"."""
    option, *following = words[settings.options:]
    if option.startswith(b"-"):
        return following[0] if option.endswith(b"m") and following else option
    return os.path.basename(option.rstrip(b"/"))


def _change_first_word(word: bytes) -> None:
    """Of what Python says that it was started with to those who ask in C; sys.orig_argv is another copy."""
    python = ctypes.CDLL(None)
    count, words = ctypes.c_int(), ctypes.POINTER(ctypes.c_void_p)()
    python.Py_GetArgcArgv(ctypes.byref(count), ctypes.byref(words))
    text = ctypes.create_unicode_buffer(os.fsdecode(word))
    python.malloc.restype, python.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    memory = python.malloc(ctypes.sizeof(text))  # Python releases it at its end, by the C library's free() in any case
    if count.value > 0 and memory:
        ctypes.memmove(memory, text, ctypes.sizeof(text))
        words[0] = memory
