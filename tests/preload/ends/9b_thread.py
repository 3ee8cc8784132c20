import sys
import threading

threading.Thread(target=lambda: 1 / 0, name="worker").start()
sys.exit(4)
