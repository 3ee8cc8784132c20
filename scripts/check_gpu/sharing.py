"""Many ranks, whatever the number of GPUs: C++, Python, a notebook's cell, other people's frameworks."""

import re
import shlex
import shutil

from check_gpu.result import Red, Seen, Skip, check
from check_gpu.session import RANKS, ROOT, Session

EIGHT = 8
EXAMPLES = ROOT / "docs" / "examples"


def parse_ctest(text: str) -> dict[str, str]:
    """Each test's outcome: "Passed", "Skipped", "Failed", …"""
    return dict(re.findall(r"Test +#\d+: (\S+) [. ]*(?:\*\*\*)?([A-Z][A-Za-z ]*?)  ", text))


@check(
    "gpu tests",
    "the tests labelled gpu: collectives and DDP over nccl, sharded optimizers, SyncBatchNorm, mixed precision",
)
def gpu_tests(session: Session) -> Seen:
    if shutil.which("ctest") is None:
        raise Skip("ctest is not installed")
    done = session.run(
        "ctest", "--test-dir", session.bin.parent, "-L", "gpu", "--output-on-failure", "--no-tests=error", limit=1800
    )
    outcomes = parse_ctest(done.out)
    said = ", ".join(f"{name} {outcome.lower()}" for name, outcome in outcomes.items())
    done.need(done.code == 0, said or f"ctest ended with {done.code}")
    if set(outcomes.values()) <= {"Skipped"}:
        raise Skip(said)
    return Seen(said)


def train_equal(session: Session, ranks: int) -> Seen:
    done = session.taas_run(ranks, "train", "--epochs", 2, "--check-equal", "--backend", "nccl")
    done.need(done.code == 0 and f"parameters equal on all {ranks} ranks" in done.out, f"train ended with {done.code}")
    warnings = [line for line in done.err.splitlines() if "Warning" in line or "WARNING" in line]
    if warnings:
        raise Red(f"warnings: {warnings[0]}", done.tail())
    accuracy = re.findall(r"accuracy (\S+ %)", done.out)
    return Seen(f"{ranks} ranks, accuracy {accuracy[-1] if accuracy else 'not said'}, parameters equal")


@check("train", "the C++ program on every GPU; no warning")
def train(session: Session) -> Seen:
    return train_equal(session, session.gpus)


@check("train shared", "the same on 8 ranks, over fewer GPUs with --oversubscribe")
def train_shared(session: Session) -> Seen:
    return train_equal(session, EIGHT)


COMPARED = ("default.mlp", "sync_cnn", "amp.", "zero.")


@check("beside python", "SyncBatchNorm, Autocast with GradScaler, ZeroRedundancyOptimizer: C++ equals Python, 4 ranks")
def beside_python(session: Session) -> Seen:
    ranks = 4
    done = session.run(
        session.python,
        ROOT / "tests" / "parity" / "ddp_parity.py",
        session.bin / "ddp_parity",
        *("--ranks", ranks, "--device", "cuda", "--only", *COMPARED),
        *("--launch", shlex.join([str(session.bin / "taas-run"), "-q", *session.shape(ranks)])),
        limit=1200,
    )
    done.need(done.code == 0, f"ddp_parity.py ended with {done.code}")
    return Seen(done.out.strip().splitlines()[-1])


@check("python ddp", "an unchanged NCCL program on 8 ranks")
def python_ddp(session: Session) -> Seen:
    done = session.taas_run(EIGHT, RANKS / "loop.py")
    done.need(done.code == 0 and f"FINISHED {EIGHT}" in done.out, f"the program ended with {done.code}")
    return Seen(f"40 steps, {done.seconds:.1f} s from start to end")


NOTEBOOK = """
import pathlib, sys
sys.path.insert(0, {tests!r})
import digits, nbformat
from nbclient import NotebookClient
digits.write(pathlib.Path("data"), 2048, 256)
pathlib.Path("project").mkdir(exist_ok=True)
notebook = nbformat.read({notebook!r}, as_version=4)
for cell in notebook.cells:
    if "parameters" in cell.metadata.get("tags", ()):
        cell.source += "\\nepochs = 2\\nlog_every = 4"
    cell.source = cell.source.replace("--gpus 8", {shape!r})
NotebookClient(notebook, timeout=600, kernel_name="python3", resources={{"metadata": {{"path": "project"}}}}).execute()
print("".join(output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())))
"""


@check("notebook", "the MNIST notebook's cell on 8 ranks")
def notebook(session: Session) -> Seen:
    session.need_module("nbclient", "nbformat", "ipykernel", "torchvision")
    text = NOTEBOOK.format(
        tests=str(ROOT / "tests" / "notebook"),
        notebook=str(EXAMPLES / "mnist.ipynb"),
        shape=" ".join(session.shape(EIGHT)),
    )
    done = session.run(session.python, "-c", text, limit=600, TAAS_RUN=session.bin / "taas-run")
    done.need(done.code == 0 and " epochs in " in done.out, f"the notebook ended with {done.code}")
    return Seen(next(line for line in done.out.splitlines() if " epochs in " in line))


FRAMEWORKS = {
    "auto_mode": (["torch"], [EXAMPLES / "auto_mode.py", "--epochs", 2], "8 processes on cuda"),
    "Lightning": (["lightning"], [EXAMPLES / "lightning_digits.py", "--epochs", 1], "8 ranks"),
    "DeepSpeed": (["deepspeed"], [EXAMPLES / "deepspeed_zero.py", "--steps", 3], "8 ranks"),
    "accelerate": (["accelerate"], [RANKS / "trainers.py", "accelerate"], "FINISHED MULTI_GPU True"),
    "transformers": (["transformers", "accelerate"], [RANKS / "trainers.py", "transformers"], "FINISHED cuda True"),
}


def framework_check(name: str) -> None:
    modules, program, words = FRAMEWORKS[name]

    @check(name, f"a program of it ({program[0].name}), unchanged, on 8 ranks")
    def run(session: Session) -> Seen:
        session.need_module(*modules)
        done = session.taas_run(EIGHT, *program, HF_HUB_OFFLINE=1, limit=600)
        done.need(done.code == 0 and words in done.out, f"{program[0].name} ended with {done.code}")
        return Seen(f"{done.seconds:.0f} s")


for framework in FRAMEWORKS:
    framework_check(framework)
