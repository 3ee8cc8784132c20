"""Every wait has a name: what a node looks for, and how much of what ranks wrote is published, on a terminal and elsewhere."""

import json
import os
import re

import pytest
from conftest import TAAS_RUN, free_port, wait_until

GIBIBYTE = 1 << 30
WRITES_TWO_FILES = f"""
import os
for name in "one.tmp", "two.tmp":  # temporary names: they are published when the run ends
    with open(os.path.join(os.environ["TAAS_OUTPUT_DIR"], name), "wb") as file:
        file.truncate(2 * {GIBIBYTE})
"""
UNKNOWN = "job-0.invalid"  # RFC 2606: nobody will ever know it


@pytest.fixture
def flushes(launcher):
    """let_one_more(): a staged file gets to the disk."""
    folder = launcher.folder / "flushes"
    folder.mkdir()
    asan = f"{launcher.environment.get('ASAN_OPTIONS', '')}:verify_asan_link_order=0"  # what is preloaded comes before its library
    launcher.environment |= {"LD_PRELOAD": os.environ["TAAS_HELD_FLUSH"], "TAAS_FLUSHES": str(folder), "ASAN_OPTIONS": asan.lstrip(":")}
    return lambda: (folder / str(len(list(folder.iterdir())))).touch()


def test_the_live_line_says_how_much_is_published(launcher, terminal, flushes):
    screen = terminal(TAAS_RUN, launcher.python(WRITES_TWO_FILES))
    screen.wait_for("| publishing 2 files, 0.0 of 4.0 GiB", "the first file is on its way")
    flushes()
    screen.wait_for("| publishing 2 files, 2.0 of 4.0 GiB", "the second one is")
    flushes()
    rows = screen.finish()
    assert len(rows) == 1 and "2 files in" in rows[0], rows


def test_elsewhere_publishing_that_lasts_is_a_line(launcher, flushes):
    with open(launcher.folder / "errors", "w") as errors:
        run = launcher.start(launcher.python(WRITES_TWO_FILES), stderr=errors)
    said = (launcher.folder / "errors").read_text
    wait_until(lambda: "taas-run: publishing 2 files, 0.0 of 4.0 GiB\n" in said(), "a line says it")
    flushes(), flushes()
    assert run.wait() == 0 and said().count("publishing") == 1


def test_programs_are_told_of_publishing(launcher, flushes):
    with open(launcher.folder / "lines", "w") as lines:
        run = launcher.start("--json", launcher.python(WRITES_TWO_FILES), stdout=lines)

    def progress() -> list:
        told = (launcher.folder / "lines").read_text()
        return [event for event in map(json.loads, told[:told.rfind("\n") + 1].splitlines()) if event.get("event") == "output_progress"]

    wait_until(progress, "an event says it")
    assert progress()[0].items() >= {"files": 2, "bytes": 4 * GIBIBYTE, "bytes_done": 0}.items()
    flushes(), flushes()
    assert run.wait() == 0
    assert "output_progress" in (launcher.run_folder() / "journal.jsonl").read_text()


def looking(*flags) -> list:
    return [TAAS_RUN, "--nnodes=2", "--node-rank=1", "--nproc-per-node=1", *flags, "--no-python", "/bin/true"]


def test_a_row_counts_how_long_a_name_is_waited_for(launcher, terminal):
    screen = terminal(*looking(f"--master-addr={UNKNOWN}", "--master-port=29500", "--join-timeout=600"), TAAS_TOKEN="a secret of ours")
    row = re.compile(rf"^taas-run: waiting for the name {UNKNOWN}, (\d+) s$")
    rows = screen.wait_for(lambda rows: rows and (found := row.search(rows[-1])) and int(found[1]) >= 4, "the row counts")
    assert sum(map(bool, map(row.search, rows))) == 1, rows
    assert "no address is known for it yet; for " in " ".join(each.strip() for each in rows), rows
    screen.press("\x03")
    screen.wait_for(lambda rows: screen.process.poll() is not None and not any(map(row.search, rows)), "the row is gone")


def test_a_row_says_that_the_coordinator_is_looked_for(launcher, terminal):
    screen = terminal(*looking("--master-addr=127.0.0.1", f"--master-port={free_port()}"), TAAS_TOKEN="a secret of ours")
    screen.wait_for(lambda rows: rows and re.search(r"^taas-run: looking for the coordinator, \d+ s$", rows[-1]), "the row is there")
    screen.press("\x03")
    screen.wait_for(lambda rows: screen.process.poll() is not None and not any("looking" in row for row in rows), "the row is gone")


def test_the_first_node_says_that_nodes_are_gathered(launcher, terminal):
    flags = ["--nnodes=2", "--node-rank=0", "--nproc-per-node=1", "--master-addr=127.0.0.1", f"--master-port={free_port()}"]
    screen = terminal(TAAS_RUN, *flags, "--no-python", "/bin/true", TAAS_TOKEN="a secret of ours")
    screen.wait_for(lambda rows: rows and re.search(r"^taas-run \d+:\d\d \| gathering nodes$", rows[-1]), "the row is there")
    screen.press("\x03")
    screen.wait_for(lambda rows: screen.process.poll() is not None and not any("gathering" in row for row in rows), "the row is gone")
