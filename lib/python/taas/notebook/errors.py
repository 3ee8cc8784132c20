"""What a distributed cell raises in the kernel. Each is shown as its own few lines, without frames of this package."""

from __future__ import annotations


class CellError(Exception):
    """The base of all of them."""

    def _render_traceback_(self) -> list[str]:
        """IPython shows these lines in place of a traceback."""
        return str(self).splitlines() or [type(self).__name__]


class CellUsage(CellError):
    """A wrong option, shape or file: one line that names the value and the way out. Nothing was started."""


class CaptureError(CellError):
    """A variable that the cell reads cannot be sent to ranks: names it, its type and two ways out.

    Nothing was started.
    """


class PullError(CellError):
    """A variable of --pull that rank 0 does not have, or that cannot be brought back. The cell itself ran."""


class RankFailed(CellError):
    """A rank failed: `rank` is the first one, `exit_code` the run's, `error_type` and `message` its exception's."""

    def __init__(
        self,
        headline: str,
        *,
        rank: int | None = None,
        exit_code: int = 1,
        error_type: str = "",
        message: str = "",
        details: tuple[str, ...] = (),
    ) -> None:
        super().__init__(headline)
        self.rank, self.exit_code, self.error_type, self.message = rank, exit_code, error_type, message
        self.details = details

    def _render_traceback_(self) -> list[str]:
        return [*self.details, str(self)]


class Interrupted(KeyboardInterrupt):
    """The cell was interrupted, and no process of it is left."""

    def _render_traceback_(self) -> list[str]:
        return [f"KeyboardInterrupt: {self}"]
