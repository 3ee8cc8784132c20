"""The environment of ranks is compared with what real torchrun exports for the same flags."""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SKIPPED = 77
DEADLINE_SECONDS = 120
DUMP = (
    "import json, os, sys\n"
    "path = os.path.join(sys.argv[1], os.environ['RANK'] + '.json')\n"
    "json.dump(dict(os.environ), open(path, 'w'))\n"
)
# Chosen anew in each run, or on purpose not torchrun's: docs/torchrun.md.
DIFFERENT = {"MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_ERROR_FILE", "OMP_NUM_THREADS"}
ONE_PROCESS = [
    "--nproc-per-node",
    "1",
]  # serves its own store, so that it can start workers of its own: docs/frameworks.md
CASES = [
    ["--nproc-per-node", "2"],
    ONE_PROCESS,
    ["--standalone"],
    ["--nproc_per_node=2", "--max-restarts", "3", "--role", "trainer"],
    ["--standalone", "--nproc-per-node=2", "--signals-to-handle", "SIGTERM,SIGUSR1"],
    ["--nproc-per-node", "2", "--virtual-local-rank"],
    ["--nnodes=1:1", "--nproc-per-node=1", "--rdzv-backend=c10d", "--rdzv-endpoint=localhost:0", "--rdzv-id=job7"],
]


def plain_environment():
    return {name: os.environ[name] for name in ("PATH", "HOME", "LD_LIBRARY_PATH") if name in os.environ}


def by_torchrun(flags, ranks):
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "dump.py"
        script.write_text(DUMP)
        subprocess.run(
            [sys.executable, "-m", "torch.distributed.run", *flags, str(script), folder],
            check=True,
            env=plain_environment(),
            capture_output=True,
            timeout=DEADLINE_SECONDS,
        )
        dumped = [json.loads((pathlib.Path(folder) / f"{rank}.json").read_text()) for rank in range(ranks)]
    return [{name: value for name, value in d.items() if name not in plain_environment()} for d in dumped]


def by_taas_run(print_plan, flags):
    result = subprocess.run(
        [print_plan, *flags, "--dry-run", "--json", "dump.py"],
        check=True,
        capture_output=True,
        text=True,
        env=plain_environment(),
        timeout=DEADLINE_SECONDS,
    )
    return [rank["environment"] for rank in json.loads(result.stdout)["ranks"]]


def main():
    if importlib.util.find_spec("torch") is None:
        print("skipped: this interpreter has no torch")
        return SKIPPED
    for flags in CASES:
        ours = by_taas_run(sys.argv[1], flags)
        theirs = by_torchrun(flags, len(ours))
        for rank, (our, their) in enumerate(zip(ours, theirs)):
            their.pop("LC_CTYPE", None)  # Python's own
            missing = sorted(set(their) - set(our))
            assert not missing, (flags, rank, "not exported", missing)
            for name in sorted(
                set(their) - DIFFERENT - ({"TORCHELASTIC_USE_AGENT_STORE"} if flags == ONE_PROCESS else set())
            ):
                assert our[name] == their[name], (flags, rank, name, our[name], "torchrun:", their[name])
        print("same:", *flags)
    return 0


if __name__ == "__main__":
    sys.exit(main())
