import sys
import threading

print(
    sys.excepthook,
    sys.displayhook is sys.__displayhook__,
    sys.unraisablehook is sys.__unraisablehook__,
    sys.breakpointhook is sys.__breakpointhook__,
    sys.gettrace(),
    sys.getprofile(),
    threading.gettrace(),
)
