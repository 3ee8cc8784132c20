import logging

print(logging.getLogger().handlers, logging.getLogger().level, logging.lastResort, logging.raiseExceptions)
print(logging.root.manager.loggerDict, logging.root.manager.disable)
logging.warning("to stderr")
