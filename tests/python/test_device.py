"""Batches in pinned memory and on a GPU. There is none here: a fake one copies late, and sees what was overwritten."""

import collections
import dataclasses
import pathlib
import re
import subprocess
from typing import Any

import numpy
import pytest
import taas
import torch
from conftest import equal, loop
from own_datasets import Big, Numbers, numbers
from fake_gpu import all_here, gpu, late  # noqa: F401
from taas.delivery import device, nested, pinning, remote
from torch.utils.data import DataLoader

pytestmark = pytest.mark.filterwarnings("ignore:'pin_memory' argument is set")
GATE = pytest.mark.gate

Pair = collections.namedtuple("Pair", "image label")


@dataclasses.dataclass(frozen=True)
class Example:
    image: Any
    name: str


class Movable:
    """Has an idea of its own of how it is moved."""

    def to(self, where):
        return ("moved", where)


def big(**options):
    return DataLoader(Big(60), 1, num_workers=1, **options)  # 1 MiB each


def small(**options):
    return DataLoader(numbers, 4, num_workers=1, **options)


@pytest.fixture
def little_memory(data_workers):
    data_workers(1, buffer_bytes=16 << 20)


@pytest.mark.parametrize("seed", [pytest.param(0, marks=GATE), 1, 2])
def test_late_copies_out_of_pinned_batches_have_the_right_bytes(gpu, little_memory, seed):
    with taas.register(big(pin_memory=True)) as loader:
        there = late(gpu, loader, seed, copied=False)
    gpu.run()
    assert equal(there, loop(big())) and not gpu.pinned_at_once


@pytest.mark.parametrize("seed", [pytest.param(0, marks=GATE), 1, 2])
def test_late_copies_to_a_device_have_the_right_bytes(gpu, little_memory, seed, monkeypatch):
    monkeypatch.setattr(device, "_COMPARED_AT_FIRST", 0)
    monkeypatch.setattr(device, "_THEN_ONE_OF", 1 << 40)
    with taas.register(big(), device="cuda") as loader:
        there = late(gpu, loader, seed)
    gpu.run()
    assert equal(there, loop(big()))


def test_a_thousand_orders_of_late_copies_have_the_right_bytes(gpu, data_workers, monkeypatch):
    """Batches of any size, so that memory of one is soon that of another."""
    monkeypatch.setattr(device, "_COMPARED_AT_FIRST", 0)
    monkeypatch.setattr(device, "_THEN_ONE_OF", 1 << 40)
    data_workers(2, buffer_bytes=1 << 20)
    plain = loop(small())
    with taas.register(small(), device="cuda") as loader, taas.register(small(pin_memory=True)) as pinned:
        for seed in range(500):
            there = late(gpu, loader, seed)
            gpu.run()
            assert equal(there, plain), seed
            there = [[gpu.copy(each) for each in batch] for batch in pinned if gpu.run(seed % 5) is None]
            gpu.run()
            assert equal(there, plain), seed


def test_late_copies_out_of_memory_that_torch_does_not_know_have_the_wrong_bytes(gpu, little_memory, monkeypatch):
    """The tests above can fail."""
    like = pinning._pinned_like
    monkeypatch.setattr(pinning, "_pinned_like", lambda tensor: torch.from_numpy(like(tensor).numpy()[:]))
    monkeypatch.setattr(gpu.memory, "block_of", lambda tensor: None)
    with taas.register(big(pin_memory=True)) as loader:
        there = late(gpu, loader, 0, copied=False)
    gpu.run()
    assert not equal(there, loop(big()))


@GATE
def test_pinned_batches_are_those_of_the_plain_loader(gpu):
    def collate(samples):
        images = torch.stack([image for image, _ in samples])
        return {
            "image": images,
            "turned": images.transpose(0, 1),
            "part": images[:, 1:],
            "none": images[:0],
            "array": numpy.arange(3),
            "pair": Pair(torch.ones(2, dtype=torch.bfloat16), "name"),
            "one": [torch.tensor(2j), 7],
        }

    def make():
        return DataLoader(numbers, 8, num_workers=1, pin_memory=True, collate_fn=collate)

    with taas.register(make()) as loader:
        for batch, plain in zip(loader, make(), strict=True):
            assert equal(batch, plain)
            tensors = batch["image"], batch["turned"], batch["part"], batch["pair"].image, batch["one"][0]
            assert all(tensor.is_pinned() for tensor in tensors)
            assert batch["image"].untyped_storage().nbytes() == batch["image"].nbytes, "what torch.save() writes"
            assert not gpu.memory.has(torch.from_numpy(batch["array"])), "who copies out of it is not known"


class Checked(collections.namedtuple("Checked", "image")):
    """Looks at what it is made of."""

    def __new__(cls, image):
        assert image.shape[1:] == (3, 2)
        return super().__new__(cls, image)


class CheckedDict(dict):
    def update(self, items):
        assert items["image"].shape[1:] == (3, 2)
        super().update(items)


class Frozen(collections.abc.Mapping):
    """Cannot be made of a dictionary."""

    def __init__(self, first, second):
        self._items = {"first": first, "second": second}

    def __getitem__(self, key):
        return self._items[key]

    def __iter__(self):
        return iter(self._items)

    def __len__(self):
        return len(self._items)


@dataclasses.dataclass
class HalfMade:
    image: Any
    later: Any = dataclasses.field(init=False)


class PinsItself:
    def __init__(self, image):
        self.image = image

    def pin_memory(self):
        self.image = self.image.pin_memory()
        self.largest = self.image.max().item()
        return self


@GATE
def test_containers_are_pinned_by_the_rules_of_torch(gpu):
    def collate(samples):
        images = torch.stack([image for image, _ in samples])
        return [
            Checked(images.clone()),
            CheckedDict(image=images.clone()),
            Frozen(images.clone(), 1),
            HalfMade(images.clone()),
            collections.Counter(a=1, b=2),
            PinsItself(images.clone()),
            images.transpose(1, 2),
        ]

    with taas.register(DataLoader(numbers, 8, num_workers=1, pin_memory=True, collate_fn=collate)) as loader:
        for number, batch in enumerate(loader):
            meant = collate([numbers[index] for index in range(8 * number, min(103, 8 * number + 8))])
            checked, checked_dict, frozen, half, counter, itself, turned = batch
            assert type(checked) is Checked and type(checked_dict) is CheckedDict
            pinned = [checked.image, checked_dict["image"], frozen["first"], itself.image, turned]
            assert all(tensor.is_pinned() for tensor in pinned)
            assert equal(pinned[:4], [meant[0].image] * 4) and equal(turned, meant[-1])
            assert equal(half.image, meant[3].image) and counter == meant[4].__class__(a=2, b=4)  # as torch does it
            assert itself.largest == meant[0].image.max().item()


@GATE
def test_containers_that_look_at_what_is_in_them_come_on_a_device(gpu):
    def collate(samples):
        images = torch.stack([image for image, _ in samples])
        return [Checked(images.clone()), CheckedDict(image=images.clone()), images.transpose(1, 2)]

    with taas.register(DataLoader(numbers, 8, collate_fn=collate), device="cuda") as loader:
        there = loop(loader)
        gpu.run()
        assert equal(
            [list(batch[0]) for batch in there],
            [list(batch[0]) for batch in loop(DataLoader(numbers, 8, collate_fn=collate))],
        )
        assert all(equal(batch[1]["image"], batch[0].image) for batch in there)
        assert all(equal(batch[2], batch[0].image.transpose(1, 2)) for batch in there)


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"device": None}])
def test_batches_ahead_of_inference_are_for_training_too(gpu, options):
    with taas.register(small(pin_memory=True), **options) as loader:
        batches = iter(loader)
        with torch.inference_mode():
            next(batches)
        assert not any(image.is_inference() for image, _ in batches)


def test_the_next_batches_are_pinned_while_the_loop_is_at_one_and_no_more(gpu, monkeypatch):
    begun = []
    begin = pinning.Twins.__init__
    monkeypatch.setattr(pinning.Twins, "__init__", lambda twins, batch: begun.append(batch) or begin(twins, batch))
    with taas.register(small(pin_memory=True)) as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        all_here(loader, 8)
        for taken in range(3, 8):
            next(iterator)
            assert len(begun) == taken + remote.BATCHES_AHEAD


def test_nothing_is_pinned_before_the_program_uses_a_gpu(gpu, monkeypatch):
    with taas.register(big()) as loader:
        assert not any(batch.is_pinned() for batch in loader), "that does not pin"
    initialised = False
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: initialised)
    with taas.register(big(pin_memory=True)) as loader:
        for number, batch in enumerate(loader):
            assert batch.is_pinned() == initialised
            initialised = number >= 10


def test_memory_that_cannot_be_pinned_is_said_once_and_the_loop_goes_on(gpu, data_workers):
    run = data_workers(1)
    gpu.memory.refuses = True
    with taas.register(big(pin_memory=True)) as loader:
        assert equal(loop(loader), loop(big()))
    with taas.register(big(), device="cuda") as loader:
        there = loop(loader)
    gpu.run()
    assert equal(there, loop(big()))
    (said,) = run.remarks()
    assert said == "torch has pinned no memory for a batch (CUDA error: out of memory): it comes in ordinary memory"


@pytest.mark.parametrize("count", [pytest.param(1, marks=GATE), 3])
def test_batches_on_a_device_are_those_of_the_plain_loader(gpu, data_workers, count):
    data_workers(count)
    with taas.register(DataLoader(numbers, 8), device="cuda") as loader:
        for _ in range(3):
            there = loop(loader)
            gpu.run()
            assert equal(there, loop(DataLoader(numbers, 8)))


def test_the_next_batches_are_copied_while_the_loop_is_at_one_and_no_more(gpu):
    with taas.register(DataLoader(Big(60), 1), device="cuda") as loader:
        iterator = iter(loader)
        next(iterator), next(iterator)
        all_here(loader, 8)
        for taken in range(3, 8):
            next(iterator)
            assert taken <= gpu.asked <= taken + remote.BATCHES_AHEAD


@GATE
def test_without_data_workers_a_batch_is_copied_when_the_loop_gets_it(gpu, data_workers):
    data_workers(0)
    plain = loop(DataLoader(numbers, 4))
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        for number, batch in enumerate(loader):
            assert gpu.asked == 2 * (number + 1)  # a pair of tensors
            gpu.run()
            assert equal(batch, plain[number])


def test_a_copy_that_fails_ahead_of_the_loop_is_tried_again_in_its_turn(gpu, monkeypatch):
    plain = loop(DataLoader(numbers, 4))
    failing = [1]

    def to(tensor, where):
        if failing and equal(tensor, plain[0][0]):
            failing.pop()
            raise RuntimeError("CUDA out of memory")
        return gpu.copy(tensor)

    monkeypatch.setattr(device, "_asked_for", to)
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        there = loop(loader)
        gpu.run()
        assert equal(there, plain) and not failing
        failing += [1, 2]
        batches = iter(loader)
        with pytest.raises(RuntimeError, match="out of memory"):
            next(batches)
        there = list(batches)
        gpu.run()
        assert equal(there, plain[1:]), "the loop goes on behind it"


def test_exceptions_come_in_their_place(gpu):
    class Faulty(Numbers):
        def __getitem__(self, index):
            if index == 9:
                raise KeyError("nine")
            return super().__getitem__(index)

    with taas.register(DataLoader(Faulty(), 4), device="cuda") as loader:
        iterator = iter(loader)
        assert equal([next(iterator), next(iterator)], loop(DataLoader(numbers, 4))[:2])
        with pytest.raises(KeyError):
            next(iterator)
        assert equal(next(iterator), loop(DataLoader(numbers, 4))[3])


@pytest.mark.parametrize("options", [{"device": "cuda"}, {"device": None}])
def test_what_is_ahead_is_not_yet_taken(gpu, options):
    plain = loop(DataLoader(numbers, 4))
    with taas.register(DataLoader(numbers, 4, pin_memory=True), **options) as loader:
        iterator = iter(loader)
        for _ in range(3):
            next(iterator)
        state = loader.state_dict()
        del iterator
    with taas.register(DataLoader(numbers, 4, pin_memory=True), **options) as loader:
        loader.load_state_dict(state)
        there = loop(loader)
        gpu.run()
        assert equal(there, plain[3:])


def compared(gpu, monkeypatch):
    """The numbers of the batches on the device that are compared."""
    numbers_of, compare = [], device._difference

    def noted(pairs):
        numbers_of.append(device._of_number(0).batches - 1)
        return compare(pairs)

    monkeypatch.setattr(device, "_difference", noted)
    return numbers_of


def test_sixteen_batches_and_then_one_of_a_thousand_are_compared(gpu, monkeypatch):
    seen = compared(gpu, monkeypatch)
    with taas.register(DataLoader(Numbers(2500), 1), device="cuda") as loader:
        loop(loader)
    assert seen == [*range(16), 1000, 2000]


@pytest.mark.parametrize("spoiled", [pytest.param(0, marks=GATE), 5, 1000])
def test_a_copy_that_is_wrong_is_said_and_the_loop_has_the_right_one(gpu, data_workers, spoiled):
    run = data_workers(1)
    gpu.spoils = lambda number: number == 2 * spoiled
    with taas.register(DataLoader(Numbers(1100), 1), device="cuda") as loader:
        there = loop(loader)
    gpu.run()
    assert equal(there, loop(DataLoader(Numbers(1100), 1)))
    (said,) = run.remarks()
    unseen = 984 if spoiled == 1000 else 0
    assert said.startswith(
        f"batch {spoiled} was copied to cpu ahead of the loop, and is not there what it is in memory: tensor 0 "
        "(torch.float32, (1, 3, 2)) differs in 1 of 24 bytes, the first of which is byte 0: "
    )
    assert said.endswith(f"the {unseen} before this one were not compared")
    assert gpu.asked <= 2 * (spoiled + 1 + remote.BATCHES_AHEAD), "nothing is copied ahead any more"


def test_a_device_that_is_wrong_twice_ends_the_loop(gpu, monkeypatch):
    wrong = "tensor 0 differs"
    monkeypatch.setattr(device, "_difference", lambda pairs: wrong)
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        with pytest.raises(
            RuntimeError, match="although it was copied twice: tensor 0 differs, and then tensor 0 differs"
        ):
            next(iter(loader))


def test_everything_but_tensors_stays_as_it_is():
    tensor, thing = torch.ones(2), object()
    batch = {
        "a": [tensor, "text", b"bytes", 3, None],
        "b": Pair(tensor, 7),
        "c": (Example(tensor, "x"), thing),
        "d": collections.OrderedDict(z=tensor),
        "e": {1, 2},
        "f": Movable(),
    }
    there = nested.mapped(batch, lambda leaf: leaf + 1 if isinstance(leaf, torch.Tensor) else leaf)
    two = torch.full((2,), 2.0)
    assert equal(there["a"], [two, "text", b"bytes", 3, None])
    assert type(there["b"]) is Pair and equal(there["b"], Pair(two, 7))
    example, same = there["c"]
    assert type(example) is Example and equal(example.image, two) and example.name == "x" and same is thing
    assert type(there["d"]) is collections.OrderedDict and equal(there["d"]["z"], two)
    assert there["e"] == {1, 2} and there["f"] is batch["f"]
    assert batch["b"].image is tensor and batch["a"][0] is tensor


def test_a_gpu_without_memory_for_the_comparison_is_not_asked(gpu, monkeypatch):
    def full(one, other):
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(torch, "equal", full)
    with taas.register(DataLoader(numbers, 4), device="cuda") as loader:
        assert len(loop(loader)) == 26


def test_copies_are_asked_for_on_their_own_stream_and_the_loop_s_stream_waits(gpu):
    copies = device.copies_to(torch.device("cuda"))
    batch = {"image": torch.ones(2, 3), "rest": (torch.ones(4), "name", Movable(), torch.eye(2).to_sparse())}
    started = copies.start(batch)
    assert gpu.log == [("begin", "copies"), ("records", "copies"), ("end", "copies")]
    gpu.log.clear()
    there = copies.finish(started)
    assert gpu.log == [("waits", "loop"), ("uses", "loop"), ("uses", "loop")]
    one, name, moved, sparse = there["rest"]
    assert equal([there["image"], one], [torch.ones(2, 3), torch.ones(4)]) and sparse.is_sparse
    assert name == "name" and moved == ("moved", torch.device("cpu"))


def test_what_is_read_is_kept_until_the_copy_is_done(gpu, monkeypatch):
    monkeypatch.setattr(device, "_COMPARED_AT_FIRST", 1)
    gpu.memory.refuses = True
    copies = device.copies_to(torch.device("cuda"))

    def lengths():
        return [len(tensor) for _, read in copies._read for tensor in read]

    copies.finish(copies.start(torch.ones(2)))
    gpu.run()
    copies.finish(copies.start(torch.ones(3)))
    assert lengths() == [3]
    copies.finish(copies.start(torch.ones(4)))
    assert lengths() == [3, 4]
    copies.close()
    assert not lengths() and gpu.done == 3


@GATE
@pytest.mark.parametrize(
    "wrong, words",
    [
        ("cuda", "PyTorch sees no GPU on this machine"),
        ("cuda:9", "no GPU on this machine"),
        ("meta", "'cuda' or 'cuda:1'"),
        ("gpu", "is not a device"),
        (3.5, "is not a device"),
    ],
)
def test_a_device_that_is_not_there_is_one_line(monkeypatch, wrong, words):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    loader = DataLoader(numbers, 8)
    with pytest.raises(taas.RegistrationError, match=words) as raised:
        taas.register(loader, device=wrong)
    assert len(str(raised.value).splitlines()) == 1 and not taas.is_registered(loader)


def test_a_gpu_too_far_names_the_last(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    with pytest.raises(taas.RegistrationError, match="'cuda:2'.*sees 2 GPUs here, of which the last is 'cuda:1'"):
        taas.register(DataLoader(numbers, 8), device="cuda:2")


@pytest.mark.parametrize("here", ["cpu", torch.device("cpu"), None])
def test_the_cpu_is_no_other_place(here):
    with taas.register(DataLoader(numbers, 8), device=here) as loader:
        assert equal(loop(loader), loop(DataLoader(numbers, 8)))


def test_data_workers_need_no_gpu(monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setenv("TAAS_ROLE", "data-worker")
    loader = DataLoader(numbers, 8)
    assert taas.register(loader, device="cuda") is loader


@GATE
def test_no_function_of_cuda_is_called_but_the_one_that_tells_which_gpu_it_is():
    """NCCL refuses two ranks on one GPU, and torch does not say which one it is to programs in C++."""
    build = pathlib.Path(taas.__file__).parents[2]
    built = [*build.glob("bin/*"), *build.glob("lib/*.so"), *build.glob("python/taas/*.so")]
    assert {"taas-run", "libtaas_nccl.so"} <= {file.name for file in built}
    for file in built:
        said = subprocess.run(["nm", "-D", "--undefined-only", file], capture_output=True, text=True, check=True).stdout
        called = set(re.findall(r"\bcu(?:da)?[A-Z]\w*", said))
        assert called == ({"cudaGetDeviceProperties"} if file.name == "libtaas_nccl.so" else set()), file
    code = pathlib.Path(__file__).parents[2]
    for file in (file for folder in ("apps", "include", "lib") for file in (code / folder).rglob("*")):
        if file.suffix in (".cpp", ".hpp", ".py") and file.name != "nccl_plugin.cpp":
            assert not re.findall(r"\bcu(?:da)?[A-Z]\w*", file.read_text()), file
    about_gpus = re.compile("cuda|gpu|nvidia|pinned memory", re.IGNORECASE)
    assert not [file for file in (code / "lib" / "data").rglob("*.?pp") if about_gpus.search(file.read_text())]
