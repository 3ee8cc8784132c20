import multiprocessing
import os

process = multiprocessing.current_process()
print(
    process.name,
    process.pid == os.getpid(),
    process.daemon,
    multiprocessing.active_children(),
    multiprocessing.parent_process(),
    len(process.authkey),
    multiprocessing.get_start_method(allow_none=True),
)
print("UNIQUE", bytes(process.authkey))
