"""What taas-run tells the interpreter that it starts: in one variable, which no program sees."""

import os
import sys
from typing import NamedTuple

VARIABLE = "TAAS_PRELOAD"
SOCKET = 3  # its number in this process


class Settings(NamedTuple):
    folder: str  # of sitecustomize, as it stands in sys.path
    probing: bool  # the first of two executions: it only shows that the hook works
    options: int  # words of the command before the program, the interpreter's own name included
    modules: list[str]
    per_rank: list[str]  # variables that ranks have and this process has not
    set_by_program: list[str]  # variables that the program sets itself
    read_at_load: list[str]  # beginnings of variables that libraries read when they are loaded
    read_later: list[str]  # of these, those that they read later
    interpreter: str  # the file that taas-run executes
    agent: int  # process id of taas-run, which will be the parent of ranks

    @classmethod
    def take(cls, folder: str) -> "Settings":
        """Reads the variable, and takes it and the folder out of everybody's sight."""
        stage, options, agent, interpreter, *lists = os.environ.pop(VARIABLE).split("\n")
        sys.path.remove(folder)
        for path in (folder, os.path.join(folder, __package__)):
            sys.path_importer_cache.pop(path, None)
        theirs = os.environ["PYTHONPATH"][len(folder) + 1 :]
        if theirs:
            os.environ["PYTHONPATH"] = theirs
        else:
            del os.environ["PYTHONPATH"]
        modules, per_rank, set_by_program, read_at_load, read_later = (names.split(",") for names in lists)
        return cls(
            folder,
            stage == "probe",
            int(options),
            modules,
            per_rank,
            set_by_program,
            read_at_load,
            read_later,
            interpreter,
            int(agent),
        )

    def print_for_serving(self) -> str:
        lists = (self.modules, self.per_rank, self.set_by_program, self.read_at_load, self.read_later)
        words = ["serve", str(self.options), str(self.agent), self.interpreter, *(",".join(names) for names in lists)]
        return "\n".join(words)
