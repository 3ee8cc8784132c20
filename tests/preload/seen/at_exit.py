import atexit
import threading
import weakref


class Kept:
    pass


kept = Kept()
weakref.finalize(kept, print, "finalised")
atexit.register(print, "first registered, last run")
atexit.register(print, "last registered, first run")
threading._register_atexit(print, "threads are shut down")
print("the end of the text")
