"""The same training with TensorFlow: each rank is a worker of MultiWorkerMirroredStrategy.

taas-run --framework tf --gpus 8 train_tf.py --epochs 10
"""

import argparse
import os
import pathlib

import numpy as np
import tensorflow as tf

from dataset import DummyDataset
from model_tf import QuestionAnswerer, Tensors, loss_of
from scores import MEASURES, BestWindows
from sizes import SIZES, WARM_UP, ModelSize
from windows import Windows

OUTPUT = pathlib.Path(os.environ.get("TAAS_OUTPUT_DIR", "output"))
INPUTS = ("tokens", "kinds", "candidates")
Arrays = dict[str, np.ndarray]


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--samples", type=int, default=4096, help="of the dummy dataset")
    parser.add_argument("--size", choices=sorted(SIZES), default="tiny", help="of the model and its windows")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=32, help="of each rank")
    return parser.parse_args()


def arrays_of(windows: Windows) -> Arrays:
    rows = [windows[index] for index in range(len(windows))]
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


class Trainer:
    def __init__(self, size: ModelSize, batch_size: int, data: Arrays) -> None:
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()  # reads TF_CONFIG, and waits for the other workers
        self.ranks, self.rank = self.strategy.num_replicas_in_sync, self.strategy.cluster_resolver.task_id or 0
        self.steps = len(data["tokens"]) // (self.ranks * batch_size)
        tf.keras.utils.set_random_seed(0)
        with self.strategy.scope():
            self.model = QuestionAnswerer(size)
            self.model(*(data[name][:1] for name in INPUTS))  # makes its variables
            growing = tf.keras.optimizers.schedules.PolynomialDecay(
                size.learning_rate / WARM_UP, WARM_UP, size.learning_rate
            )
            self.optimizer = tf.keras.optimizers.AdamW(growing, weight_decay=0.01)
            self.optimizer.build(self.model.trainable_variables)
        self.batches = iter(
            self.strategy.distribute_datasets_from_function(lambda context: self.share(data, batch_size, context))
        )

    def share(self, data: Arrays, batch_size: int, context: tf.distribute.InputContext) -> tf.data.Dataset:
        """What this worker trains on: its share, in a new order in each epoch, without end."""
        whole = tf.data.Dataset.from_tensor_slices(data).shard(context.num_input_pipelines, context.input_pipeline_id)
        return whole.shuffle(len(data["tokens"]), seed=0).batch(batch_size, drop_remainder=True).repeat()

    @tf.function
    def train_step(self, batch: Tensors) -> tf.Tensor:
        def replica(batch: Tensors) -> tf.Tensor:
            with tf.GradientTape() as tape:
                outputs = self.model(*(batch[name] for name in INPUTS), training=True)
                loss = loss_of(outputs, batch) / self.ranks  # apply() sums the gradients of all ranks
            weights = self.model.trainable_variables
            self.optimizer.apply(tape.gradient(loss, weights), weights)
            return loss

        return self.strategy.reduce(tf.distribute.ReduceOp.SUM, self.strategy.run(replica, args=(batch,)), axis=None)

    def train_epoch(self) -> float:
        return float(np.mean([self.train_step(next(self.batches)) for _ in range(self.steps)]))

    def evaluate(self, windows: Windows) -> str:
        data, best = arrays_of(windows), BestWindows()
        outputs = self.model(*(data[name] for name in INPUTS))
        best.add({name: values.numpy() for name, values in outputs.items()}, data)
        examples, *totals = best.sums(windows.examples)
        return ", ".join(f"{name} {total / examples:.3f}" for name, total in zip(MEASURES, totals))

    def save(self) -> None:
        """The file gets its name when it is whole."""
        OUTPUT.mkdir(parents=True, exist_ok=True)
        unfinished = OUTPUT / ".unfinished.weights.h5"
        self.model.save_weights(unfinished)
        unfinished.replace(OUTPUT / "checkpoint.weights.h5")


def main() -> None:
    options = read_options()
    size = SIZES[options.size]
    validation = DummyDataset(max(1, options.samples // 16), size.windows, seed=1)
    trainer = Trainer(size, options.batch_size, arrays_of(DummyDataset(options.samples, size.windows)))
    for epoch in range(options.epochs):
        loss = trainer.train_epoch()
        measured = trainer.evaluate(validation)  # by each rank: a worker that ends early would count as lost
        if trainer.rank == 0:
            trainer.save()
            print(f"epoch {epoch}: loss {loss:.4f} on {trainer.ranks} ranks, {measured}", flush=True)


if __name__ == "__main__":
    main()
