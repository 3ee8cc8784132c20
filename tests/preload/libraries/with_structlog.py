"""Loggers of its own, over those of Python, which torch uses."""

import logging
import sys
import structlog

logging.basicConfig(format="%(name)s %(message)s", stream=sys.stdout, level=logging.DEBUG)
structlog.configure(
    processors=[structlog.stdlib.add_log_level, structlog.processors.KeyValueRenderer()],
    logger_factory=structlog.stdlib.LoggerFactory(),
)
import torch

structlog.get_logger("torch.distributed").info("sum", value=torch.ones(2).sum().item())
structlog.get_logger().debug("names", names=sorted(logging.root.manager.loggerDict)[:9])
