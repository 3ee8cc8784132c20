"""What torch's modules log goes to loguru."""

import logging
import sys
from loguru import logger


class Intercept(logging.Handler):
    def emit(self, record):
        logger.opt(depth=6, exception=record.exc_info).log(record.levelname, record.getMessage())


logger.configure(handlers=[{"sink": sys.stdout, "format": "{level} {name} {message}", "colorize": False}])
logging.basicConfig(handlers=[Intercept()], level=0)
import torch

logging.getLogger("torch.nn").warning("from torch")
logger.info("sum {}", torch.ones(2).sum().item())
print([type(handler).__name__ for handler in logging.getLogger("torch").handlers], logging.getLogger("torch").propagate)
