import importlib.machinery as machinery
import sys

print([repr(finder) for finder in sys.meta_path], [repr(hook) for hook in sys.path_hooks], sys.path)
print([entry for entry in sys.path_importer_cache if "preload" in entry.replace("tests/preload", "")])
print([vars(finder).get("__doc__") for finder in sys.meta_path], __import__)


class Finder:
    find_spec_of_python = machinery.PathFinder.find_spec

    def find_spec(self, name):
        return self.find_spec_of_python(name, None)


print(
    Finder().find_spec("json").origin,
    machinery.PathFinder.find_spec(fullname="json").name,
    machinery.PathFinder.find_spec,
)
