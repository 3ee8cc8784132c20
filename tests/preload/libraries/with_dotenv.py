"""Sets variables from a file, before torch is imported."""

import io
import os
from dotenv import load_dotenv

load_dotenv(stream=io.StringIO("TORCH_LOGS=+dynamo\nOWN=1\n"))
import torch

print(os.environ["OWN"], torch.ones(2).tolist(), torch._logging._internal.LOG_ENV_VAR)
