"""What cells capture, and what they refuse to, before any process is started."""

import pytest


def refused(kernel, code):
    done = kernel.run(code)
    assert done.error is not None and done.error["ename"] == "CaptureError", done.traceback or done.outputs
    assert not kernel.processes(), "something was started"
    return done.traceback


@pytest.mark.parametrize(
    "made, name, words",
    [
        ("log = open('/dev/null', 'w')", "log", ("log (_io.TextIOWrapper)", "an open file", "open it in the cell")),
        ("import threading\nlock = threading.Lock()", "lock", ("lock (_thread.lock)", "a lock", "make it in the cell")),
        ("draws = (i for i in range(3))", "draws", ("draws (generator)", "a generator", "make it in the cell")),
        (
            "import torch\nfrom torch._subclasses import FakeTensorMode\n"
            "with FakeTensorMode():\n    weights = torch.empty(3, device='cuda')",
            "weights",
            (
                "weights (torch._subclasses.fake_tensor.FakeTensor)",
                "a tensor on cuda:0, and the cell's ranks have no GPU",
                ".cpu()",
            ),
        ),
        (
            "import socket\nends = {'a': socket.socketpair()}",
            "ends",
            ("ends (dict)", "ends['a'][0] (socket.socket)", "define it in the cell"),
        ),
        (
            "import threading\nclass Data:\n    pass\ndata = Data()\ndata.guard = threading.RLock()",
            "data",
            ("data (Data)", "data.guard (_thread.RLock)", "make it in the cell"),
        ),
    ],
    ids=["file", "lock", "generator", "cuda", "nested", "attribute"],
)
def test_what_cannot_be_captured_is_named_with_its_type_and_two_ways_out(kernel, project, made, name, words):
    kernel.run(made).check()
    said = refused(kernel, f"%%taas --gpus 2\nx = 1\nprint({name})")
    assert "line 3 of the cell reads" in said
    for word in (*words, f"--no-capture {name}"):
        assert word in said
    assert not (project / "taas-runs").exists()


def test_all_of_them_at_once_and_also_what_a_function_reads(kernel):
    kernel.run("log = open('/dev/null')\nother = open('/dev/null')\ndef tell():\n    log.read()").check()
    said = refused(kernel, "%%taas --gpus 2\ntell(); other")
    assert "what the cell calls reads log" in said and "line 2 of the cell reads other" in said


def test_left_out_it_may_be_defined_in_the_cell(kernel):
    kernel.run("log = open('/dev/null')\ndef tell():\n    return log").check()
    assert (
        kernel.run("%%taas --gpus 2 --no-capture log\nprint(tell() if 'log' in globals() else 'none')").check().stream()
        == "none\n"
    )
    assert kernel.run("%%taas --gpus 2\nlog = 5\ndef tell():\n    return log\ntell()").check().result == "5"


def test_what_is_not_read_does_no_harm(kernel):
    kernel.run("log = open('/dev/null')\nx = 1").check()
    assert kernel.run("%%taas --gpus 2\nx").check().result == "1"


def test_tensors_are_in_shared_memory_once_and_stay_tied(kernel):
    kernel.run(
        "import torch, os, numpy\nbig = torch.zeros(1 << 21)\nview = big[10:20]\ntable = numpy.zeros(1 << 18)\n"
        "pair = [big, big.view(2, -1)]"
    ).check()
    done = kernel.run("""%%taas --gpus 2
import torch.distributed as dist
dist.init_process_group("gloo")
rank = dist.get_rank()
pair[0][12] = rank + 1                # this rank's own from here on
table[0] = rank + 1
dist.barrier()
mapped = [line for line in open("/proc/self/maps") if "taas-cell" in line]
found = [view[2].item(), big[12].item(), pair[1][0, 12].item(), table[0], len(mapped), os.environ["RANK"]]
every = [None, None]
dist.all_gather_object(every, found)
dist.destroy_process_group()
print(every)
""").check()
    assert done.stream() == "[[1.0, 1.0, 1.0, 1.0, 1, '0'], [2.0, 2.0, 2.0, 2.0, 1, '1']]\n".replace(
        "1.0, 1, ", "np.float64(1.0), 1, "
    ).replace("2.0, 1, ", "np.float64(2.0), 1, ")
    assert kernel.run("big.sum().item(), table.sum().item()").check().result == "(0.0, 0.0)"


def test_modules_are_imported_again_with_the_submodules_that_are_used(kernel, project):
    (project / "own.py").write_text("value = 7\n")
    kernel.run("import xml, xml.dom.minidom, own, sys\nimport os.path as path").check()
    assert (
        kernel.run(
            "%%taas --gpus 2\n"
            "xml.dom.minidom.parseString('<a/>').documentElement.tagName, own.value, path.basename('a/b')"
        )
        .check()
        .result
        == "('a', 7, 'b')"
    )


def test_closures_partials_lambdas_defaults_and_recursion(kernel):
    kernel.run('''
import functools
base = 100
def maker(n):
    def inner(x, extra=base):
        return x + n + extra + (inner(x - 1) if x else 0)
    return inner
made = maker(1)
part = functools.partial(lambda a, b: a * b + base, 2)
def fact(n: int) -> int:
    """Doc."""
    return 1 if n < 2 else n * fact(n - 1)
class Base:
    kind = "base"
    @classmethod
    def name(cls): return cls.kind + str(base)
    @property
    def size(self): return base
class Derived(Base):
    kind = "derived"
    def __init__(self): super().__init__()
things = {"d": Derived(), "t": Derived}
''').check()
    assert (
        kernel.run(
            '%%taas --gpus 2\nmade(1), part(3), fact(5), fact.__doc__, things["t"].name(), things["d"].size, '
            'isinstance(things["d"], things["t"])'
        )
        .check()
        .result
        == "(203, 106, 120, 'Doc.', 'derived100', 100, True)"
    )


def test_a_spawned_process_has_the_notebooks_and_the_cells_definitions_but_does_not_run_the_cell(kernel):
    kernel.run("import multiprocessing, os\nbase = 10\ndef earlier(n):\n    return base + n").check()
    done = kernel.run("""%%taas --gpus 2
offset = 1
def work(n):
    return earlier(n) + offset
print("once")
with multiprocessing.get_context("spawn").Pool(1) as pool:
    print(pool.map(work, [1, 2]))
""").check()
    assert done.stream() == "once\n[12, 13]\n"


def test_cached_and_dispatching_functions_go_with_an_empty_cache(kernel):
    kernel.run('''
import functools
scale = 2
@functools.lru_cache(maxsize=7)
def scaled(n):
    return n * scale
@functools.cache
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
@functools.singledispatch
def kind(x):
    return "other"
@kind.register
def _(x: int):
    return "int"
class Table:
    @functools.lru_cache
    def row(self, n):
        return n * scale
    @functools.cached_property
    def width(self):
        """Doc."""
        return scale + 1
scaled(1), fib(5)
''').check()
    done = kernel.run(
        "%%taas --gpus 2 --pull fib,Table\nempty = scaled.cache_info().currsize\nscale = 3\n"
        "size = scaled.cache_parameters()['maxsize']\n"
        "scaled(2), size, empty, fib(10), kind(1), kind(''), Table().row(5), Table().width, "
        "Table.width.__doc__"
    ).check()
    assert done.result == "(6, 7, 0, 55, 'int', 'other', 15, 4, 'Doc.')"
    assert kernel.run("fib(20), fib.cache_info().hits > 0, Table().width").check().result == "(6765, True, 3)"
