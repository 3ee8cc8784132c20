import os
import threading

print(
    threading.active_count(),
    threading.main_thread() is threading.current_thread(),
    threading.main_thread().name,
    threading.main_thread().native_id == os.getpid() == threading.get_native_id(),
    threading.stack_size(),
    threading.main_thread().ident == threading.get_ident(),
    os.listdir("/proc/self/task") == [str(os.getpid())],
)
