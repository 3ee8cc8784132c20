import logging
import sys

logging.getLogger("torch").setLevel(logging.ERROR)
logging.getLogger("torch._dynamo").setLevel(logging.ERROR)
logging.getLogger("torch.distributed").addHandler(logging.NullHandler())
before = dict(sys.modules)
import torch

loggers = logging.root.manager.loggerDict
print(sorted(sys.modules), list(sys.modules)[-1], sys.meta_path)
print([name for name, module in before.items() if sys.modules.get(name) is not module])
print(torch.__spec__, torch.__loader__, torch.__file__, torch.__path__, torch.nn.__spec__, torch.ops.__spec__)
for name in sorted(loggers):
    logger = loggers[name]
    if isinstance(logger, logging.Logger):
        print(name, logger.level, logger.propagate, logger.disabled, logger.handlers, logger.parent.name)
    else:
        print(name, "placeholder")
