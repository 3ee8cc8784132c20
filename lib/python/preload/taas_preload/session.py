"""The interpreter of a session (`taas-run up`): no program is known yet when it is made. For each run a launcher is forked from it,
and with it an interpreter like this one, which is judged by what the run wants and then serves it like any other."""

import os
import socket
import sys

from . import fits, launcher, linux, server
from .program_slots import NotFound, ProgramSlots
from .server import Request
from .settings import REFUSALS, SOCKET, Settings


class Session:
    def __init__(self, settings: Settings, early: frozenset[str], given: dict[bytes, bytes], asked: set[str]) -> None:
        """As fits.Made."""
        self._settings = settings
        self._made = fits.Made(early, given, asked)
        self._slots: ProgramSlots | None = None

    def serve(self, ready: str) -> Request:
        """Tells the session whether this is of use, and returns in each new rank of each run."""
        try:
            self._slots = ProgramSlots(sys.orig_argv[self._settings.options])
        except NotFound:
            ready = f"refused Python {sys.version.split()[0]} keeps the program that it runs where nobody knows it"
        os.set_inheritable(REFUSALS, False)
        name = linux.set_name(b"taas-session")
        self._settings = launcher.begin(server.serve(self._settings, ready), self._settings)
        linux.set_name(name)
        request = server.serve(self._settings, self._judge())
        assert self._slots is not None
        self._slots.put_words([os.fsdecode(word) for word in request.argv])
        return request

    def use_program(self, request: Request) -> None:
        """In a rank: what Python will run, and where it looks for modules."""
        assert self._slots is not None
        self._made.follow_path(os.environ.get("PYTHONPATH", ""))
        self._slots.put([os.fsdecode(word) for word in request.argv[self._settings.options:]])

    @property
    def settings(self) -> Settings:
        return self._settings

    def _judge(self) -> str:
        """By what the launcher asks first of all. What does not fit is told to the session too, which may make another."""
        text, descriptor = _hear_question()
        ready = server.READY
        try:
            wanted = fits.Wanted.read(text)
            os.chdir(wanted.folder)
            self._made.judge(wanted, self._settings)
        except fits.Misfit as misfit:
            ready = f"refused {misfit}"
            if misfit.stale:
                with socket.socket(fileno=os.dup(REFUSALS)) as refusals:
                    socket.send_fds(refusals, [str(misfit).encode(errors="replace")[:1000]], [descriptor])
        os.close(descriptor)
        os.close(REFUSALS)
        return ready


def _hear_question() -> tuple[bytes, int]:
    """Its words and the file that they lie in. Where nobody asks any more, the process ends."""
    link = socket.socket(fileno=SOCKET)
    message, descriptors, _, _ = socket.recv_fds(link, 64, 1)
    link.detach()
    if message != b"fit" or not descriptors:
        os._exit(0)
    with open(os.dup(descriptors[0]), "rb") as file:
        return file.read(), descriptors[0]
