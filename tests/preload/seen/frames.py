import inspect
import sys
import traceback

frame = sys._getframe()
while frame:
    print(frame.f_code.co_filename, frame.f_code.co_name, frame.f_lineno)
    frame = frame.f_back
print(len(inspect.stack()))
traceback.print_stack(file=sys.stdout)
