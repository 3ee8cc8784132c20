"""How large the model is; for torch and for TensorFlow."""

from dataclasses import dataclass

from windows import WindowShape

POINTERS = ("start", "end", "long")  # first and last word of the short answer, first one of the long answer
WARM_UP = 20  # steps in which the learning rate grows


@dataclass(frozen=True)
class ModelSize:
    dimension: int
    layers: int
    heads: int
    dropout: float
    learning_rate: float
    windows: WindowShape


SIZES = {
    "tiny": ModelSize(64, 2, 4, 0.0, 2e-3, WindowShape(length=80, stride=32, question=16, buckets=4096)),
    "base": ModelSize(512, 8, 8, 0.1, 1e-4, WindowShape(length=384, stride=128, question=32, buckets=65536)),
}
