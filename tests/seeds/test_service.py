"""The service's page: its cells with something in the place of <launch training>, in a kernel."""

import json

import pytest

from conftest import need
from lightning_program import lightning_program
from pieces import piece

JOIN = piece("service/init_process_group.py").replace("'nccl'", "'nccl' if torch.cuda.is_available() else 'gloo'")

TRAIN = f"""
import torch
{JOIN}
total = torch.tensor(torch.distributed.get_rank() + 1, device="cuda" if torch.cuda.is_available() else "cpu")
torch.distributed.all_reduce(total)
print("total", total.item(), "of", torch.distributed.get_world_size())
torch.distributed.destroy_process_group()
"""

DATA_SET = """
import torch
from torch.utils.data import DataLoader, Dataset

class Squares(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return torch.tensor(index ** 2)

DataSet = Squares()
"""


def cell(name: str, training: str) -> str:
    """A cell of the page that launches a training."""
    head, placeholder, _ = piece(name).partition("<launch training>")
    assert placeholder
    return head.rstrip(" ") + training


def test_a_cell_on_eight_gpus(kernel):
    done = kernel.run(cell("service/gpus_cell.txt", TRAIN)).check()
    assert done.stream() == "total 36 of 8\n"


def test_a_cell_of_lightning_needs_no_initialization(kernel):
    need("lightning")
    text = cell("service/gpus_cell.txt", lightning_program(0)).replace("--gpus 8", "--gpus 2").replace("devices=8", "devices=2")
    assert "2 ranks on 1 machines, 2 steps\n" in kernel.run(text).check().stream()


@pytest.fixture
def delivered(kernel, project):
    """The page's way: describe and register, train, unregister. All 8 ranks sum up their batches."""
    kernel.run(DATA_SET).check()
    kernel.run(piece("service/register.py")).check()
    done = kernel.run(cell("service/units_cell.txt", "import json\nprint(json.dumps([batch.tolist() for batch in data_loader]))\n")).check()
    return json.loads(done.stream()), done.stream("stderr"), project / "taas-runs" / "latest"


def test_a_registered_loader_is_delivered_to_eight_gpus(delivered, kernel):
    batches, told, run = delivered
    assert batches == [[index ** 2] for index in range(40)]
    events = [json.loads(line) for line in (run / "journal.jsonl").read_text().splitlines()]
    names = [event.get("event") for event in events]
    assert names.index("data_prepared") < names.index("rank_spawned"), "the first batches are there before the GPUs are used"
    assert names.count("rank_spawned") == 8 and "data_loader: 320 samples" in told
    kernel.run(piece("service/unregister.py")).check()
    assert kernel.run("taas.is_registered(data_loader)").check().result == "False"
