import logging

print(logging.getLogger().handlers, logging.getLogger().level, logging.lastResort, logging.raiseExceptions)
logging.warning("to stderr")
