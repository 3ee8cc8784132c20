import inspect
import linecache
import __main__

print(inspect.getsource(__main__)[:60], inspect.getsourcefile(__main__), inspect.getfile(__main__))
print(linecache.getline(__main__.__file__, 1), inspect.getmodule(__main__) is __main__)
