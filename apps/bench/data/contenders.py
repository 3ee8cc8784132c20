"""Ways to get batches from a producer into a Python loop. Each has `serve` (the producer, on the other node; the local
ones have none) and `batches` (the consumer), which yields `count` batches in order."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile

import payloads

LOCAL = {"dataloader", "dataloader-2", "taas-local"}  # their producers are children of the consumer


def announce(port: int):
    """Tells the benchmark that the producer is ready."""
    print(port, flush=True)


# --- raw TCP into recycled buffers: the limit ---


class Tcp:
    BUFFERS = 8

    @staticmethod
    def serve(address, kind, count):
        pool = [memoryview(array) for array in payloads.ready_pool(kind)]
        with socket.create_server((address, 0)) as listener:
            announce(listener.getsockname()[1])
            link, _ = listener.accept()
            cubic(link)
            for number in range(count):
                link.sendall(pool[number % payloads.POOL])
            link.recv(1)

    @staticmethod
    def batches(address, port, kind, count):
        import torch

        buffers = [torch.ones(payloads.batch_bytes(kind), dtype=torch.uint8) for _ in range(Tcp.BUFFERS)]
        views = [memoryview(buffer.numpy()) for buffer in buffers]
        with socket.create_connection((address, port)) as link:
            cubic(link)
            for number in range(count):
                place = number % Tcp.BUFFERS
                read = 0
                while read < len(views[place]):
                    read += link.recv_into(views[place][read:], 0, socket.MSG_WAITALL)
                yield buffers[place]


def cubic(link):
    try:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    except OSError:
        pass


# --- torch's own DataLoader, with one worker process and with two ---


class DataLoader:
    WORKERS = 1

    @classmethod
    def batches(cls, address, port, kind, count):
        return iter(payloads.loader(kind, count, num_workers=cls.WORKERS, prefetch_factor=4))


class DataLoader2(DataLoader):
    WORKERS = 2


# --- ours ---


class Taas:
    ENCRYPTION = "plain"

    @classmethod
    def serve(cls, address, kind, count):
        listener = socket.create_server((address, 0))
        listener.set_inheritable(True)
        announce(listener.getsockname()[1])
        os.environ.update(TAAS_ROLE="data-worker", TAAS_DATA_WORKER="0", TAAS_DATA_LISTEN=f"{listener.fileno()},-")
        os.execv(sys.executable, [sys.executable, "-u", "-m", "taas.worker"])

    @classmethod
    def batches(cls, address, port, kind, count):
        write_plan(os.environ["TAAS_DATA_PLAN"], [(address, port, "")], cls.ENCRYPTION)
        import taas

        loader = payloads.loader(kind, count)
        taas.register(loader)
        yield from loader
        taas.unregister(loader)


class TaasTls(Taas):
    ENCRYPTION = "tls"


class TaasLocal:
    """One data worker on the same machine, as `taas-run --cpus 1 --data-cores 1` starts it."""

    @staticmethod
    def batches(address, port, kind, count):
        with workers_here(1):
            import taas

            with taas.register(payloads.loader(kind, count, num_workers=1)) as loader:
                yield from loader


@contextlib.contextmanager
def workers_here(count, of_the_first=None):
    """So many data workers on this machine, over Unix sockets. This process is a rank of their run from here on.

    `of_the_first`: variables that the first one has besides.
    """
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        os.environ["TAAS_DATA_PLAN"] = f"{folder}/plan.json"
        sockets = [f"{folder}/{number}" for number in range(count)]
        write_plan(os.environ["TAAS_DATA_PLAN"], [("", 0, path) for path in sockets], "tls")
        for number, path in enumerate(sockets):
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(path)
                listener.listen()
                worker = subprocess.Popen(
                    [sys.executable, "-u", "-m", "taas.worker"],
                    pass_fds=[listener.fileno()],
                    stdin=subprocess.DEVNULL,
                    env={
                        **os.environ,
                        "PYTHONPATH": os.pathsep.join(sys.path),
                        "TAAS_ROLE": "data-worker",
                        "TAAS_DATA_WORKER": str(number),
                        "TAAS_DATA_LISTEN": f"-,{listener.fileno()}",
                        **(of_the_first if of_the_first and number == 0 else {}),
                    },
                )
            stack.callback(worker.wait)
            stack.callback(worker.kill)
        yield


def write_plan(path, workers, encryption):
    """What taas-run tells its processes of data delivery (docs/data-workers.md).

    `workers`: address, port and Unix socket of each.
    """
    plan = {
        "run": "benchmark",
        "key": "5" * 64,
        "encryption": encryption,
        "compression": "none",
        "units": 0,
        "buffer_bytes": 1 << 30,
        "on_error": "raise",
        "loader": "",
        "world_size": 1,
        "workers": [
            {"name": f"worker {number}", "address": address, "port": port, "unix": unix}
            for number, (address, port, unix) in enumerate(workers)
        ],
    }
    with open(f"{path}.new", "w", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        json.dump(plan, file)
    os.rename(f"{path}.new", path)


# --- Arrow Flight ---


class Flight:
    @staticmethod
    def serve(address, kind, count):
        import pyarrow
        import pyarrow.flight

        schema = pyarrow.schema([("bytes", pyarrow.uint8())])
        pool = [pyarrow.record_batch([pyarrow.array(array)], schema=schema) for array in payloads.ready_pool(kind)]

        class Server(pyarrow.flight.FlightServerBase):
            def do_get(self, context, ticket):
                batches = (pool[number % payloads.POOL] for number in range(count))
                return pyarrow.flight.GeneratorStream(schema, batches)

        server = Server(f"grpc+tcp://{address}:0")
        announce(server.port)
        server.serve()

    @staticmethod
    def batches(address, port, kind, count):
        import pyarrow.flight
        import torch

        client = pyarrow.flight.connect(f"grpc+tcp://{address}:{port}")
        reader = client.do_get(pyarrow.flight.Ticket(b""))
        for _ in range(count):
            yield torch.from_numpy(reader.read_chunk().data.column(0).to_numpy(zero_copy_only=True))


# --- tf.data service, without compression (its default makes random data no faster) ---


class TfData:
    @staticmethod
    def serve(address, kind, count):
        import tensorflow as tf

        dispatcher = tf.data.experimental.service.DispatchServer(tf.data.experimental.service.DispatcherConfig(port=0))
        port = int(dispatcher.target.rsplit(":", 1)[1])
        worker = tf.data.experimental.service.WorkerServer(
            tf.data.experimental.service.WorkerConfig(
                dispatcher_address=f"{address}:{port}",
                worker_address=f"{address}:%port%",
                data_transfer_address=f"{address}:%dts_port%",
            )
        )
        announce(port)
        worker.join()

    @staticmethod
    def batches(address, port, kind, count):
        import tensorflow as tf
        import torch

        # One random batch, made once and kept by cache().
        dataset = tf.data.Dataset.range(1).map(
            lambda _: tf.cast(
                tf.random.stateless_uniform(
                    (payloads.batch_bytes(kind),), seed=(0, 0), minval=0, maxval=256, dtype=tf.int32
                ),
                tf.uint8,
            )
        )
        dataset = dataset.cache().repeat(count)
        dataset = dataset.apply(
            tf.data.experimental.service.distribute(
                processing_mode="parallel_epochs", service=f"grpc://{address}:{port}", compression=None
            )
        )
        for batch in dataset.prefetch(4):
            yield torch.from_numpy(batch.numpy())


CONTENDERS = {
    "tcp": Tcp,
    "taas": Taas,
    "taas-tls": TaasTls,
    "taas-local": TaasLocal,
    "dataloader": DataLoader,
    "dataloader-2": DataLoader2,
    "flight": Flight,
    "tf.data": TfData,
}
NEEDS = {"flight": "pyarrow", "tf.data": "tensorflow"}  # beside torch and numpy
UNCHECKED = {"tf.data"}  # makes its own random batches: a numpy pool cannot be part of its graph
