"""What happens when a rank fails or does not come: the right verdict, soon, and nothing left behind."""

import re
import statistics
import subprocess

from check_gpu import machine
from check_gpu.result import Red, Seen, Skip, check
from check_gpu.session import RANKS, Finished, Session

FOUR = 4
GROUP_TIMEOUT = 8
SOON = 5.0  # seconds
RESTART_SHARE = 1 / 5  # of the first start
GIBIBYTE = 1 << 30


def instants(done: Finished, mark: str) -> list[float]:
    """When ranks printed `mark`; output of ranks other than 0 is in the run's files, the console has rank 0's."""
    return [float(found) for found in re.findall(rf"{mark} (\d+\.\d+)", done.out + done.err)]


def faulty(session: Session, fault: str, ranks: int = FOUR, options: tuple = (), **variables) -> Finished:
    """Runs the loop with all ranks' output on the console."""
    return session.run(
        session.bin / "taas-run",
        *session.shape(ranks),
        "--tee",
        "3",
        *options,
        RANKS / "loop.py",
        FAULT=fault,
        **variables,
    )


def fault_time(done: Finished) -> float:
    told = instants(done, "FAULT")
    done.need(bool(told), "the fault did not happen")
    return told[0]


def hang_once(session: Session) -> float:
    """Seconds from the group's timeout to the end of the run."""
    before = machine.compute_processes()
    done = faulty(session, "skip@2@10", PG_TIMEOUT=GROUP_TIMEOUT)
    late = done.ended - fault_time(done) - GROUP_TIMEOUT
    done.need("rank 2 did not come to all_reduce" in done.err, "the verdict does not name the rank that is missing")
    done.need(late <= SOON, f"the end came {late:.1f} s after the timeout")
    session.need_gpus_free(before)
    return late


@check("hang", f"a rank that does not come is named, at most {SOON:.0f} s after the group's timeout")
def hang(session: Session) -> Seen:
    late = [hang_once(session) for _ in range(session.repeats)]
    return Seen(
        f"named {len(late)} of {len(late)} times, {statistics.median(late):.1f} s after the timeout (at most "
        f"{max(late):.1f})"
    )


def restart_once(session: Session) -> tuple[float, float]:
    """Seconds to the first step of the first generation, and from the kill to that of the second."""
    done = faulty(session, "kill@2@10", options=("--max-restarts", "1"))
    done.need(
        done.code == 0 and f"FINISHED {FOUR}" in done.out, f"the run was not restarted, it ended with {done.code}"
    )
    first, second = instants(done, "FIRST 0"), instants(done, "FIRST 1")
    done.need(bool(first and second), "the ranks did not say when they began")
    return max(first) - done.began, max(second) - fault_time(done)


@check(
    "restart",
    "a killed rank, --max-restarts 1: the next generation's first step after at most a fifth of the first start",
)
def restart(session: Session) -> Seen:
    times = [restart_once(session) for _ in range(session.repeats)]
    start, again = (statistics.median(values) for values in zip(*times))
    line = f"first step after {start:.2f} s, after the kill {again:.2f} s ({again / start:.2f} of it)"
    if again > RESTART_SHARE * start:
        raise Red(line)
    return Seen(line)


# fault: (exit code, words of the verdict)
FAULTS = {
    "kill@1@10": (137, "rank 1 was killed by SIGKILL"),
    "segv@1@10": (139, "rank 1 was killed by SIGSEGV"),
    "raise@2@10": (1, "rank 2 raised ValueError: bad sample 17"),
    "exit@3@10": (7, "rank 3 exited with code 7"),
    "oom@3@10": (1, "smaller batch"),
    "assert@2@10": (None, "device-side assert triggered"),
}


@check(
    "faults",
    f"kill, segv, raise, exit, GPU out of memory, device-side assert: each is named within {SOON:.0f} s, the GPU is "
    "free",
)
def faults(session: Session) -> Seen:
    times = {}
    for fault, (code, words) in FAULTS.items():
        before = machine.compute_processes()
        done = faulty(session, fault)
        times[fault] = done.ended - fault_time(done)
        done.need(
            code in (None, done.code) and words in done.err,
            f"{fault}: exit code {done.code}, or no '{words}' in the verdict",
        )
        done.need(times[fault] <= SOON, f"{fault}: the end came after {times[fault]:.1f} s")
        session.need_gpus_free(before)
    return Seen(", ".join(f"{fault.split('@')[0]} {seconds:.1f} s" for fault, seconds in times.items()))


FULL = "import torch\ntorch.empty(2 << 30, dtype=torch.uint8, device='cuda')"


@check("full gpu", "memory that another process holds is named with that process")
def full_gpu(session: Session) -> Seen:
    holder = subprocess.Popen(
        [session.python, str(RANKS / "hold_memory.py")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=session.environment({"LEAVE": GIBIBYTE, "CUDA_VISIBLE_DEVICES": 0}),
    )
    try:
        if not holder.stdout.readline().startswith("HELD"):
            raise Red("the memory could not be taken")
        if holder.pid not in machine.compute_processes():
            raise Skip("the driver does not show this container's processes by their ids")
        program = session.folder / "full.py"
        program.write_text(FULL)
        done = session.run(session.bin / "taas-run", "--gpus", 1, program, CUDA_VISIBLE_DEVICES=0)
        done.need(
            done.code == 1 and f"process {holder.pid}" in done.err,
            "the verdict does not name the process that holds the memory",
        )
        return Seen(f"process {holder.pid} was named")
    finally:
        holder.stdin.close()
        holder.wait()
