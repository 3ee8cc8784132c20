import threading

event = threading.Event()
threading.Thread(target=event.wait, daemon=True).start()
thread = threading.Thread(target=print, args=("a thread that is not waited for still prints",))
thread.start()
