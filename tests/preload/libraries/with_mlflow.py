"""Logs to files, and patches libraries when they are imported."""

import logging
import os
import tempfile
import mlflow

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"
mlflow.autolog(silent=True)
import torch

with tempfile.TemporaryDirectory() as folder:
    mlflow.set_tracking_uri(f"sqlite:///{folder}/runs.db")
    print(mlflow.get_tracking_uri().rpartition("/")[2], torch.ones(2).tolist(), logging.getLogger("mlflow").handlers)
