"""The service's example, MNIST in a notebook, from its own cells: eight ranks, nine epochs, a few digits."""

import re

import digits
import pytest

from pieces import piece

pytest.importorskip("torchvision")

TRAIN, TEST = 128, 64
CELLS = ("imports", "network", "train", "test")
TRAINING = piece("service/training_cell.py").replace('torch.device("cuda")', 'torch.device("cuda" if torch.cuda.is_available() else "cpu")')
ACCURACY = """
trained = Net()
trained.load_state_dict({name.removeprefix("module."): value for name, value in torch.load("mnist_cnn.pt", map_location="cpu").items()})
digits = datasets.MNIST("../data", train=False, transform=transforms.Compose([
    transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))]))
test(trained, torch.device("cpu"), torch.utils.data.DataLoader(digits, batch_size=1000))
"""


@pytest.fixture
def notebook(kernel, project, tmp_path):
    """A kernel in which all cells but the last one have run."""
    digits.write(tmp_path / "data", TRAIN, TEST)
    for name in CELLS:
        kernel.run(piece(f"service/{name}.py")).check()
    return kernel


def accuracies(text: str) -> list[int]:
    """How many of the test's digits were right, each time that it says so."""
    line = rf"^Test set: Average loss: \d+\.\d{{4}}, Accuracy: (\d+)/{TEST} \(\d+%\)$"
    return [int(found) for found in re.findall(line, text, re.MULTILINE)]


def test_the_notebook_at_eight_ranks(notebook, project):
    """Its last cell as it stands: all ranks call torch.save, and only rank 0 may write to the project."""
    done = notebook.run(TRAINING).check()
    text = done.stream()
    assert "taas: ranks 1-7 wrote mnist_cnn.pt, too: only what rank 0 wrote was kept\n" in done.stream("stderr")
    begun = re.findall(rf"^Train Epoch: (\d) \[0/{TRAIN} \(0%\)\]\tLoss: \d+\.\d{{6}}$", text, re.MULTILINE)
    assert begun == [str(epoch) for epoch in range(1, 10)], text
    assert len(accuracies(text)) == 9 and accuracies(text)[-1] > TEST // 2, text
    assert re.search(r"^Total time: \d+(\.\d+)? sec$", text, re.MULTILINE), text
    assert (project / "mnist_cnn.pt").stat().st_size > 4 * 9216 * 128
    assert accuracies(notebook.run(ACCURACY).check().stream()) == accuracies(text)[-1:], "the checkpoint is the trained model"
