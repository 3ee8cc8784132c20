"""A step of TensorFlow's MultiWorkerMirroredStrategy: its workers find each other by TF_CONFIG alone."""

import json
import os

import tensorflow as tf
from reporting import report


def main():
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    resolver = strategy.cluster_resolver
    with strategy.scope():
        weight = tf.Variable(2.0)
        optimizer = tf.keras.optimizers.SGD(0.5)
        optimizer.build([weight])

    @tf.function
    def step(sample):
        def replica(value):
            with tf.GradientTape() as tape:
                loss = weight * value / strategy.num_replicas_in_sync
            optimizer.apply([tape.gradient(loss, weight)], [weight])  # sums the gradients of all workers
            return loss

        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica, args=(sample,)), axis=None)

    loss = step(tf.constant(float(resolver.task_id + 1)))
    report(
        int(os.environ["RANK"]),
        index=resolver.task_id,
        type=resolver.task_type,
        loss=float(loss),
        replicas=strategy.num_replicas_in_sync,
        weight=float(weight.numpy()),
        workers=json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"],
    )


if __name__ == "__main__":
    main()
