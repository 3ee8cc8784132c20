"""What taas-run tells the interpreter that it starts: in one variable, which no program sees."""

import os
import sys
from typing import NamedTuple

VARIABLE = "TAAS_PRELOAD"
SOCKET = 3  # its number in this process
REFUSALS = 6  # of a session: where it is told what did not fit (4 and 5 are what this process itself has said so far)
_SESSION = "session"


def forget(folder: str) -> None:
    """That modules were imported from there."""
    for path in (folder, os.path.join(folder, __package__)):
        sys.path_importer_cache.pop(path, None)


class Settings(NamedTuple):
    folder: str  # of sitecustomize, as it stands in sys.path
    probing: bool  # the first of two executions: it only shows that the hook works
    options: int  # words of the command before the program, the interpreter's own name included
    modules: list[str]
    per_rank: list[str]  # variables that ranks have and this process has not
    set_by_program: list[str]  # variables that the program sets itself
    agent: int  # process id of taas-run, which will be the parent of ranks
    is_session: bool  # launchers are forked from this one, each with an interpreter of its own

    @classmethod
    def take(cls, folder: str) -> "Settings":
        """Reads the variable, and takes it and the folder out of everybody's sight."""
        stage, options, agent, kind, *lists = os.environ.pop(VARIABLE).split("\n")
        sys.path.remove(folder)
        forget(folder)
        theirs = os.environ["PYTHONPATH"][len(folder) + 1:]
        if theirs:
            os.environ["PYTHONPATH"] = theirs
        else:
            del os.environ["PYTHONPATH"]
        modules, per_rank, set_by_program = (names.split(",") for names in lists)
        return cls(folder, stage == "probe", int(options), modules, per_rank, set_by_program, int(agent), kind == _SESSION)

    def print_for_serving(self) -> str:
        lists = [",".join(names) for names in (self.modules, self.per_rank, self.set_by_program)]
        return "\n".join(["serve", str(self.options), str(self.agent), _SESSION if self.is_session else "run", *lists])
