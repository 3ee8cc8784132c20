"""model.py in Keras."""

import tensorflow as tf

from examples import ANSWER_TYPES
from sizes import POINTERS, ModelSize
from windows import DOCUMENT, IGNORED, KINDS, NOTHING

Tensors = dict[str, tf.Tensor]
layers = tf.keras.layers


class QuestionAnswerer(tf.keras.Model):
    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.words = layers.Embedding(size.windows.buckets, size.dimension)
        self.kinds = layers.Embedding(KINDS, size.dimension)
        self.positions = layers.Embedding(size.windows.length, size.dimension)
        self.neighbours = layers.Conv1D(size.dimension, 7, padding="same")
        self.blocks = [EncoderLayer(size) for _ in range(size.layers)]
        self.norm = layers.LayerNormalization()
        self.pointers = layers.Dense(len(POINTERS))
        self.answer_type = layers.Dense(len(ANSWER_TYPES))

    def call(self, tokens: tf.Tensor, kinds: tf.Tensor, candidates: tf.Tensor, training: bool = False) -> Tensors:
        hidden = self.words(tokens) + self.kinds(kinds) + self.positions(tf.range(tf.shape(tokens)[1]))
        hidden += self.neighbours(hidden)
        for block in self.blocks:
            hidden = block(hidden, kinds != NOTHING, training=training)
        hidden = self.norm(hidden)
        start, end, long = tf.unstack(self.pointers(hidden), axis=-1)
        document = kinds >= DOCUMENT
        return {
            "type": self.answer_type(hidden[:, 0]),
            "start": only(start, document),
            "end": only(end, document),
            "long": only(long, candidates),
        }


class EncoderLayer(layers.Layer):
    def __init__(self, size: ModelSize) -> None:
        super().__init__()
        self.attention = layers.MultiHeadAttention(size.heads, size.dimension // size.heads, dropout=size.dropout)
        self.feed_forward = tf.keras.Sequential(
            [layers.Dense(4 * size.dimension, "gelu"), layers.Dense(size.dimension)]
        )
        self.norms = [layers.LayerNormalization(), layers.LayerNormalization()]
        self.dropout = layers.Dropout(size.dropout)

    def call(self, hidden: tf.Tensor, present: tf.Tensor, training: bool = False) -> tf.Tensor:
        normed = self.norms[0](hidden)
        attended = self.attention(normed, normed, attention_mask=present[:, None, :], training=training)
        hidden += self.dropout(attended, training=training)
        return hidden + self.dropout(self.feed_forward(self.norms[1](hidden)), training=training)


def only(logits: tf.Tensor, allowed: tf.Tensor) -> tf.Tensor:
    """Takes the other positions out, except position 0, which stands for "not here"."""
    here = tf.range(tf.shape(logits)[1]) > 0
    return tf.where(here[None] & ~allowed, logits.dtype.min, logits)


def loss_of(outputs: Tensors, batch: Tensors) -> tf.Tensor:
    total = 0.0
    for name in ("type", *POINTERS):
        counts = batch[name] != IGNORED
        right = tf.where(counts, batch[name], 0)
        total += tf.where(counts, tf.nn.sparse_softmax_cross_entropy_with_logits(right, outputs[name]), 0.0)
    return tf.reduce_mean(total)
