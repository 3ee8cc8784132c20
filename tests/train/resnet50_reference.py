"""The network of train --model resnet50 takes torchvision's weights and gives torchvision's results.

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
        torch.save({"format": "taas checkpoint", "version": 1, "epoch": 0, "model": dict(network.state_dict()),
                    "optimizer": None, "extra": {"images": images}}, given)
        subprocess.run([peer, given, made], check=True)
        results = torch.load(made, weights_only=True)["extra"]
    with torch.no_grad():
        wanted = network(images)
    assert wanted.std() > 0.01, "the network's results are all alike"
    assert torch.allclose(results["whole"], wanted, rtol=1e-4, atol=1e-5), (results["whole"] - wanted).abs().max()


if __name__ == "__main__":
    main(sys.argv[1])
