"""What ranks of programs/data_program.py see of the data workers."""

import json

from processes import wait_until
from runs import PROGRAMS


class Seen:
    """What each rank sees of the workers."""

    def __init__(self, records):
        self.folder = records.folder
        # Before the launcher, and behind its flags.
        self.environment = ["env", f"PYTHONPATH={PROGRAMS / 'packages'}", f"FOLDER={records.folder}"]
        self.command = ["--preload", "none", str(PROGRAMS / "data_program.py")]

    def of(self, rank):
        try:
            return json.loads((self.folder / f"seen-{rank}").read_text())
        except FileNotFoundError:
            return None

    def wait_for(self, workers, ranks=2):
        wait_until(
            lambda: all(self.of(rank) == workers for rank in range(ranks)),
            f"{workers} at each of {ranks} ranks, not {[self.of(rank) for rank in range(ranks)]}",
        )

    def wait_for_hosts(self, hosts, ranks=2):
        """The machines may come in any order."""

        def hosts_of(rank):
            return sorted(str(entry and entry[0]) for entry in self.of(rank) or [])

        wait_until(lambda: all(hosts_of(rank) == hosts for rank in range(ranks)), f"{hosts}")
