"""The network of train --model resnet50 takes torchvision's weights and gives torchvision's results, also cut in two.

usage: resnet50_reference.py RESNET50_PEER
"""

import os
import subprocess
import sys
import tempfile

import torch

SKIPPED = 77

try:
    from torchvision.models import resnet50
except ImportError as error:
    print(f"skipped: {error} (pip install -r scripts/requirements-frameworks.txt)")
    sys.exit(SKIPPED)


def main(peer: str) -> None:
    torch.manual_seed(1)
    network = resnet50()
    with torch.no_grad():  # statistics that are not those of a new network: a wrong name would be seen
        for name, buffer in network.named_buffers():
            if name.endswith("running_mean"):
                buffer.normal_(std=0.1)
    network.eval()
    images = torch.randn(3, 3, 64, 64)
    with tempfile.TemporaryDirectory() as folder:
        given, made = os.path.join(folder, "given.pt"), os.path.join(folder, "made.pt")
        # A plain dictionary, without the metadata that only Python understands.
        torch.save(
            {
                "format": "taas checkpoint",
                "version": 1,
                "epoch": 0,
                "model": dict(network.state_dict()),
                "optimizer": None,
                "extra": {"images": images},
            },
            given,
        )
        subprocess.run([peer, given, made], check=True)
        results = torch.load(made, weights_only=True)["extra"]
    with torch.no_grad():
        # Other sizes of batches are computed in another order, by kernels that the processor decides on.
        whole = network(images)
        wanted = {f"parts of {size}": torch.cat([network(part) for part in images.split(size)]) for size in (1, 2, 8)}
    wanted |= {"whole": whole, "cut": whole}
    assert whole.std() > 0.01, "the network's results are all alike"
    assert sorted(results) == ["cut", "parts of 1", "parts of 2", "parts of 8", "whole"], sorted(results)
    for name, result in results.items():
        assert torch.allclose(result, wanted[name], rtol=1e-4, atol=1e-5), (name, (result - wanted[name]).abs().max())
    assert torch.equal(results["cut"], results["whole"]), "cut in two on one device it computes something else"


if __name__ == "__main__":
    main(sys.argv[1])
