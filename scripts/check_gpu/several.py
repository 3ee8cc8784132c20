"""What only several GPUs can show."""

import json
import re
import shutil
import statistics

from check_gpu.faults import SOON, fault_time, faulty
from check_gpu.report import table
from check_gpu.result import Red, Seen, check
from check_gpu.session import RANKS, Session

SIZES = [1 << power for power in range(12, 31, 3)]  # 4 KiB to 1 GiB
NEAR = 0.9  # of what nccl-tests has measured


def bus_bandwidth(size: int, seconds: float, ranks: int) -> float:
    """In GB/s, as nccl-tests counts for all_reduce: what each link has to carry, 2(n-1)/n of the data."""
    return size / seconds / 1e9 * 2 * (ranks - 1) / ranks


def parse_nccl_tests(text: str) -> dict[int, float]:
    """Bus bandwidth by size, out of place, of all_reduce_perf's table."""
    found = {}
    for line in text.splitlines():
        fields = line.split()
        if len(fields) >= 8 and fields[0].isdigit() and fields[2] == "float":
            found[int(fields[0])] = float(fields[7])
    return found


def by_nccl_tests(session: Session) -> dict[int, float]:
    program = shutil.which("all_reduce_perf")
    if program is None:
        return {}
    done = session.run(
        program, "-b", SIZES[0], "-e", SIZES[-1], "-f", SIZES[1] // SIZES[0], "-g", session.gpus, limit=600
    )
    return parse_nccl_tests(done.out)


@check("bus bandwidth", "all_reduce by size, in nccl-tests' measure and beside it", gpus=2)
def bandwidth(session: Session) -> Seen:
    done = session.taas_run(session.gpus, RANKS / "all_reduce.py", BYTES=",".join(map(str, SIZES)), limit=600)
    measured = [json.loads(line) for line in done.out.splitlines() if line.startswith("{")]
    done.need(done.code == 0 and len(measured) == len(SIZES), f"the program ended with {done.code}")
    theirs = by_nccl_tests(session)
    rows = [
        [
            f"{one['bytes'] / 1024:.0f} KiB",
            f"{one['seconds'] * 1e6:.1f}",
            f"{one['bytes'] / one['seconds'] / 1e9:.2f}",
            f"{bus_bandwidth(one['bytes'], one['seconds'], session.gpus):.2f}",
            f"{theirs[one['bytes']]:.2f}" if one["bytes"] in theirs else "–",
        ]
        for one in measured
    ]
    details = table(["size", "µs", "GB/s", "bus GB/s", "nccl-tests bus GB/s"], rows)
    if not all(one["right"] for one in measured):
        raise Red("a wrong sum", details)
    ours = bus_bandwidth(measured[-1]["bytes"], measured[-1]["seconds"], session.gpus)
    other = theirs.get(measured[-1]["bytes"])
    line = f"{ours:.1f} GB/s at 1 GiB" + (
        f", nccl-tests {other:.1f}" if other else "; nccl-tests' all_reduce_perf is not in PATH"
    )
    if other and ours < NEAR * other:
        raise Red(line, details)
    return Seen(line, details)


@check("equal to torchrun", "DDP's parameters after ten steps, to the bit", gpus=2)
def equal_to_torchrun(session: Session) -> Seen:
    digests = []
    for done in (
        session.taas_run(session.gpus, RANKS / "digest.py"),
        session.torchrun(session.gpus, RANKS / "digest.py"),
    ):
        found = re.search(r"DIGEST ([0-9a-f]{64})", done.out)
        done.need(done.code == 0 and found is not None, f"the program ended with {done.code}, or ranks differ")
        digests.append(found[1])
    if digests[0] != digests[1]:
        raise Red(f"{digests[0][:16]} under taas-run, {digests[1][:16]} under torchrun")
    return Seen(f"SHA-256 {digests[0][:16]}…")


@check("peer access", "which GPUs reach each other's memory; every copy is right", gpus=2)
def peer_access(session: Session) -> Seen:
    done = session.run(session.python, RANKS / "peers.py")
    done.need(done.code == 0, f"the program ended with {done.code}")
    pairs = json.loads(done.out.strip().splitlines()[-1])
    rows = [
        [f"{pair['from']} → {pair['to']}", "yes" if pair["peers"] else "no", f"{pair['gigabytes_per_second']:.1f}"]
        for pair in pairs
    ]
    details = table(["copy", "peer access", "GB/s"], rows)
    if not all(pair["right"] for pair in pairs):
        raise Red("a copy is wrong", details)
    rates = [pair["gigabytes_per_second"] for pair in pairs]
    return Seen(
        f"{sum(pair['peers'] for pair in pairs)} of {len(pairs)} pairs, {statistics.median(rates):.0f} GB/s", details
    )


@check("abort", f"a killed rank, each rank with a GPU of its own: the end within {SOON:.0f} s", gpus=2)
def abort(session: Session) -> Seen:
    times = []
    for _ in range(session.repeats):
        done = faulty(session, "kill@1@10", ranks=session.gpus)
        times.append(done.ended - fault_time(done))
        done.need(
            done.code == 137 and "rank 1 was killed by SIGKILL" in done.err,
            f"exit code {done.code}, or another verdict",
        )
        done.need(times[-1] <= SOON, f"the end came after {times[-1]:.1f} s")
    return Seen(f"{statistics.median(times):.1f} s (at most {max(times):.1f})")
