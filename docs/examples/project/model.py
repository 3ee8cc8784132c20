"""The model: a small transformer encoder that points at the answer."""

import torch
from torch import Tensor, nn

from examples import ANSWER_TYPES
from sizes import POINTERS, ModelSize
from windows import DOCUMENT, IGNORED, KINDS, NOTHING, PADDING


class QuestionAnswerer(nn.Module):
    """For each window: which type of answer, and logits over its positions for each of POINTERS."""

    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.words = nn.Embedding(size.windows.buckets, size.dimension, padding_idx=PADDING)
        self.kinds = nn.Embedding(KINDS, size.dimension)
        self.positions = nn.Embedding(size.windows.length, size.dimension)
        self.neighbours = nn.Conv1d(size.dimension, size.dimension, kernel_size=7, padding=3)
        layer = nn.TransformerEncoderLayer(
            size.dimension, size.heads, 4 * size.dimension, size.dropout, "gelu", batch_first=True, norm_first=True
        )
        norm = nn.LayerNorm(size.dimension)
        self.encoder = nn.TransformerEncoder(layer, size.layers, norm, enable_nested_tensor=False)
        self.pointers = nn.Linear(size.dimension, len(POINTERS))
        self.answer_type = nn.Linear(size.dimension, len(ANSWER_TYPES))
        for embedding in (self.words, self.kinds, self.positions):
            nn.init.normal_(embedding.weight, std=0.05)

    def forward(self, tokens: Tensor, kinds: Tensor, candidates: Tensor) -> dict[str, Tensor]:
        hidden = self.words(tokens) + self.kinds(kinds) + self.positions.weight
        hidden = hidden + self.neighbours(hidden.transpose(1, 2)).transpose(1, 2)
        hidden = self.encoder(hidden, src_key_padding_mask=kinds == NOTHING)
        start, end, long = self.pointers(hidden).unbind(-1)
        document = kinds >= DOCUMENT
        return {
            "type": self.answer_type(hidden[:, 0]),
            "start": only(start, document),
            "end": only(end, document),
            "long": only(long, candidates),
        }


def only(logits: Tensor, allowed: Tensor) -> Tensor:
    """Takes the other positions out, except position 0, which stands for "not here"."""
    allowed = allowed.clone()
    allowed[:, 0] = True
    return logits.masked_fill(~allowed, torch.finfo(logits.dtype).min)


def loss_of(outputs: dict[str, Tensor], batch: dict[str, Tensor]) -> Tensor:
    """The cross entropies of all outputs together; the mean over the windows."""
    sums = [
        nn.functional.cross_entropy(outputs[name], batch[name], ignore_index=IGNORED, reduction="sum")
        for name in ("type", *POINTERS)
    ]
    return torch.stack(sums).sum() / len(batch["type"])
