"""Ranks that wait for one that only takes long are not called stuck; a busy machine changes nothing about that."""

import concurrent.futures
import os
import pathlib
import subprocess

TAAS_RUN = os.environ["TAAS_RUN"]
FULL = bool(os.environ.get("TAAS_FULL"))  # ./scripts/test --full
DEADLINE_SECONDS = 600
PROGRAM = pathlib.Path(__file__).parent / "hangs" / "slow_phases.py"

KINDS = ["save", "evaluation", "compilation", "download", "upload", "polling", "tokenization", "debugger", "data", "collection of garbage",
         "sleep", "a C call", "stragglers", "large collectives"]
QUICK = ["save", "evaluation", "download", "upload", "polling", "debugger", "data"]


def said(kind, folder) -> str:
    command = [TAAS_RUN, "--nproc-per-node", "2", "--shutdown-timeout", "1", PROGRAM, kind, folder]
    nothing, end = os.pipe()  # an input that nothing comes from
    try:
        done = subprocess.run(command, cwd=folder, text=True, stdin=nothing, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              timeout=DEADLINE_SECONDS)
    finally:
        os.close(nothing)
        os.close(end)
    return done.stderr


def test_no_slow_phase_is_called_a_standstill(tmp_path):
    """All at once, so that there are many more busy processes than cores."""
    kinds = KINDS if FULL else QUICK
    folders = {kind: tmp_path / kind.replace(" ", "-") for kind in kinds}
    for folder in folders.values():
        folder.mkdir()
    with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:
        texts = list(pool.map(lambda kind: said(kind, folders[kind]), kinds))
    lines = {kind: [line for line in text.splitlines() if line.startswith("taas-run: ")] for kind, text in zip(kinds, texts)}
    for kind in kinds:
        print(kind, *lines[kind], sep="\n  ")
    assert [(kind, line) for kind in kinds for line in lines[kind] if "nothing has moved" in line] == []
    assert [(kind, line) for kind in kinds for line in lines[kind] if " waited " in line and "for rank 0" not in line] == []
