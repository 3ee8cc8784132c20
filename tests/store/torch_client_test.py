"""The real TCPStore client of the installed torch against our store; each script of operations runs against torch's own
server too, and must tell the same.

usage: torch_client_test.py STORE_SERVER           all tests
       torch_client_test.py STORE_SERVER --bench   operations a second, ours and torch's
"""

import os
import sys
import threading
import time
import traceback
from datetime import timedelta

try:
    import torch
    import torch.distributed as dist
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from store_process import StoreProcess

DEADLINE = timedelta(seconds=60)
SHORT = timedelta(milliseconds=50)
RANKS = 8


def connect(port, host="127.0.0.1"):
    return dist.TCPStore(host, port, None, False, DEADLINE, wait_for_workers=False)


def torch_server(use_libuv=True):
    return dist.TCPStore("127.0.0.1", 0, None, True, DEADLINE, wait_for_workers=False, use_libuv=use_libuv)


def outcome(function, *arguments):
    """What a call gives: its value, or the class of its error."""
    try:
        return function(*arguments)
    except Exception as error:  # pylint: disable=broad-except
        return type(error).__name__


def soon(function, *arguments):
    thread = threading.Thread(target=function, args=arguments)
    thread.start()
    return thread


def settle(store):
    """Requests without an answer, such as set, have been carried out when a later one is answered."""
    store.num_keys()


# Scripts of operations: each yields what it sees.


def values(store, _):
    yield store.set("k", "v"), store.get("k"), store.check(["k"]), store.check(["k", "none"])
    yield store.set("k", b"\0\xff".decode("latin-1")), store.get("k")
    yield store.delete_key("k"), store.delete_key("k"), store.num_keys()
    store.set("big", "x" * 3_000_000)
    yield len(store.get("big"))


def counting(store, other):
    yield [store.add("n", amount) for amount in (5, -7, 0)], other.add("n", 2**40), store.get("n")
    yield store.compare_set("c", "expected", "x"), store.compare_set("c", "", "first")
    yield other.compare_set("c", "wrong", "second"), store.compare_set("c", "first", "second"), other.get("c")


def many_keys(store, other):
    store.append("a", "x")
    settle(store)
    other.append("a", "yz")
    settle(other)
    store.multi_set(["b", "c"], ["1", ""])
    yield other.multi_get(["a", "b", "c"]), store.num_keys()
    names = [f"key{i}" for i in range(2000)]
    store.multi_set(names, names)
    yield other.multi_get(names) == [name.encode() for name in names], other.check(names), other.wait(names)


def listing(store, other):
    store.set("a", "1")
    dist.PrefixStore("group", other).set("b", "2")
    settle(other)
    yield sorted(store.list_keys()), store.get("group/b"), dist.PrefixStore("group", store).get("b")


def queues(store, other):
    store.queue_push("q", "1")
    settle(store)
    other.queue_push("q", "2")
    settle(other)
    yield store.queue_len("q"), store.num_keys(), store.check(["q"])
    yield other.queue_pop("q"), store.queue_pop("q", False), store.queue_len("q"), outcome(store.queue_pop, "q", False)
    pusher = soon(other.queue_push, "later", "3")
    yield store.queue_pop("later")
    pusher.join()


def waiting(store, other):
    yield outcome(store.wait, ["never"], SHORT), store.set("k", "1"), store.get("k")
    setter = soon(other.set, "late", "2")
    yield store.wait(["k", "late"]), store.get("late")
    setter.join()
    store.set_timeout(SHORT)
    yield outcome(store.get, "missing"), store.get("k"), outcome(store.queue_pop, "empty"), store.check(["k"])
    store.set_timeout(DEADLINE)
    other.set("missing", "3")
    yield store.get("missing"), [outcome(store.wait, ["never"], SHORT) for _ in range(5)], store.add("n", 1)


def barriers(store, other):
    first = soon(other.barrier, "b", 2, DEADLINE)
    yield store.barrier("b", 2, DEADLINE)
    first.join()
    yield (
        outcome(store.barrier, "alone", 2, SHORT),
        store.set("k", "1"),
        store.get("k"),
        other.barrier("alone", 2, DEADLINE),
    )


EVERYWHERE = [values, counting, many_keys, listing, waiting]
ONLY_LIBUV = [queues, barriers]


def transcript(script, port):
    return list(script(connect(port), connect(port, "localhost")))


def test_operations(executable):
    for script in EVERYWHERE + ONLY_LIBUV:
        with StoreProcess(executable) as store:
            ours = transcript(script, store.port)
        for use_libuv in [True, False] if script in EVERYWHERE else [True]:
            server = torch_server(use_libuv)
            theirs = transcript(script, server.port)
            assert ours == theirs, f"{script.__name__}: ours {ours}, torch's {theirs} (libuv: {use_libuv})"


def in_processes(count, function):
    """Calls function(rank) in forked processes; their exit codes."""
    children = []
    for rank in range(count):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                function(rank)
                code = 0
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def train_step(rank, port, host, init_method, use_libuv):
    os.environ.update(
        RANK=str(rank),
        WORLD_SIZE=str(RANKS),
        LOCAL_RANK=str(rank),
        MASTER_ADDR=host,
        MASTER_PORT=str(port),
        TORCHELASTIC_USE_AGENT_STORE="True",
        USE_LIBUV=use_libuv,
    )
    dist.init_process_group("gloo", init_method=init_method, timeout=DEADLINE)
    tensor = torch.full((1000,), float(rank))
    dist.all_reduce(tensor)
    assert tensor.eq(sum(range(RANKS))).all(), tensor
    group = dist.new_group(list(range(RANKS // 2)))
    dist.barrier()
    gathered = [None] * RANKS
    dist.all_gather_object(gathered, {"rank": rank})
    assert [entry["rank"] for entry in gathered] == list(range(RANKS))
    assert (rank < RANKS // 2) == (dist.get_rank(group) >= 0)
    dist.destroy_process_group()


def test_process_groups(executable):
    for host, init_method, use_libuv in [("127.0.0.1", None, "1"), ("localhost", "env://", "0")]:
        with StoreProcess(executable) as store:
            codes = in_processes(RANKS, lambda rank: train_step(rank, store.port, host, init_method, use_libuv))
        assert codes == [0] * RANKS, codes
        assert sorted(store.lines) == sorted(f"joined {rank}" for rank in range(RANKS)), store.lines


def test_a_dead_client_disturbs_nobody(executable):
    with StoreProcess(executable) as store:
        client = connect(store.port)
        pid = os.fork()
        if pid == 0:
            doomed = connect(store.port)
            doomed.set("alive", "1")
            doomed.wait(["never"])
            os._exit(0)
        client.wait(["alive"])
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        client.set("never", "1")
        assert client.get("never") == b"1"


# Operations a second.


def rate(count, function):
    start = time.perf_counter()
    for number in range(count):
        function(number)
    return count / (time.perf_counter() - start)


def rates(port):
    store = connect(port)
    other = connect(port)
    store.set("k", "v")

    def hand_over(number):
        store.set(f"h{number}", "1")
        other.wait([f"h{number}"])

    names = [f"m{i}" for i in range(100)]
    store.multi_set(names, names)
    return {
        "add": rate(20000, lambda _: store.add("n", 1)),
        "get (wait and get)": rate(10000, lambda _: store.get("k")),
        "set, wait by another": rate(10000, hand_over),
        "multi_get of 100": rate(2000, lambda _: store.multi_get(names)),
        "set of 1 MiB": rate(200, lambda number: store.set("big", BIG)),
    }


BIG = "x" * 2**20


def crowd_rate(port):
    """Adds a second of 8 processes at once."""
    count = 4000
    start = time.perf_counter()
    codes = in_processes(RANKS, lambda _: rate(count, lambda _, store=connect(port): store.add("n", 1)))
    assert codes == [0] * RANKS
    return RANKS * count / (time.perf_counter() - start)


def bench(executable):
    with StoreProcess(executable) as store:
        ours = {**rates(store.port), "add, 8 processes": crowd_rate(store.port)}
    pid_port = os.pipe()
    stop = os.pipe()
    server = os.fork()
    if server == 0:  # torch's server in a process of its own, as ours is
        os.close(stop[1])
        theirs_server = torch_server()
        os.write(pid_port[1], str(theirs_server.port).encode())
        os.read(stop[0], 1)
        os._exit(0)
    port = int(os.read(pid_port[0], 16))
    theirs = {**rates(port), "add, 8 processes": crowd_rate(port)}
    os.write(stop[1], b"x")
    os.waitpid(server, 0)
    print(f"{'operation':24s} {'ours':>10s} {'torch':>10s}  ratio")
    for name, value in ours.items():
        print(f"{name:24s} {value:8.0f}/s {theirs[name]:8.0f}/s  {value / theirs[name]:.2f}")


def main():
    executable = sys.argv[1]
    if "--bench" in sys.argv:
        return bench(executable)
    for test in [test_process_groups, test_a_dead_client_disturbs_nobody, test_operations]:
        test(executable)
        print(f"{test.__name__}: ok", flush=True)


if __name__ == "__main__":
    main()
