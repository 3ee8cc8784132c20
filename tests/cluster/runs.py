"""What ranks of the test programs wrote about their runs, and the checks that many tests share."""

import json
import pathlib
import re

from processes import wait_until

PROGRAMS = pathlib.Path(__file__).parent / "programs"


class Records:
    """The folder that a test program writes to."""

    def __init__(self, folder: pathlib.Path):
        self.folder = folder
        folder.mkdir()

    def command(self, program: str, *arguments) -> list:
        return [str(PROGRAMS / program), str(self.folder), *arguments]

    def names(self, pattern: str) -> list:
        return sorted(path.name for path in self.folder.glob(pattern))

    def wait_for(self, pattern: str, count: int):
        wait_until(lambda: len(self.names(pattern)) >= count, f"{count} times {pattern} in {self.folder}")

    def environments(self) -> list:
        """Of all ranks, in their order; for report_rank.py."""
        paths = sorted(self.folder.glob("[0-9]*"), key=lambda path: int(path.name))
        return [json.loads(path.read_text()) for path in paths]

    # --- for living_rank.py ---

    def finish(self):
        (self.folder / "finish").touch()

    def lives(self, generation: int) -> dict:
        """Rank → (host, first sign of life, last one), in seconds of time.monotonic()."""
        lives = {}
        for path in self.folder.glob(f"{generation}-*"):
            signs = path.read_text().split()
            if signs:
                _, rank, host = path.name.split("-")
                lives[int(rank)] = (host, int(signs[0]) / 1e9, int(signs[-1]) / 1e9)
        return lives

    def wait_for_generation(self, generation: int, ranks: int) -> float:
        """When the last rank of the generation gave its first sign of life."""
        wait_until(lambda: len(self.lives(generation)) == ranks, f"{ranks} ranks of generation {generation}")
        return max(first for _, first, _ in self.lives(generation).values())

    def assert_one_generation_at_a_time(self):
        generations = sorted({int(name.split("-")[0]) for name in self.names("[0-9]*-*")})
        for former, later in zip(generations, generations[1:]):
            last = max(last for _, _, last in self.lives(former).values())
            first = min(first for _, first, _ in self.lives(later).values())
            assert last < first, f"generation {former} lived {last - first:.3f} s into generation {later}"


def lines_about(host: str, text: str) -> list:
    return [line for line in text.splitlines() if re.search(rf"\b{host}\b", line)]


def assert_nothing_left(cluster):
    """No process of a run is left on any machine, or is about to end."""
    patterns = ("taas-run", str(PROGRAMS), "rank_program")
    try:
        wait_until(lambda: not cluster.processes(*patterns), "all processes of the run are gone")
    except AssertionError as error:
        raise AssertionError(f"{error}: {cluster.processes(*patterns)}") from None
