"""Lines out of pieces of a stream, in time that grows with the stream alone however long a line is."""

from __future__ import annotations


class Lines:
    """Keeps what has no end yet."""

    def __init__(self) -> None:
        self._begun: list[bytes] = []

    def add(self, piece: bytes) -> list[bytes]:
        """The lines that end with this piece, without their ends."""
        *lines, rest = piece.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._begun, lines[0]])
            self._begun = []
        if rest:
            self._begun.append(rest)
        return lines

    def rest(self) -> bytes:
        """What came after the last line's end; it is taken."""
        rest, self._begun = b"".join(self._begun), []
        return rest
