import sys

print([repr(finder) for finder in sys.meta_path], [repr(hook) for hook in sys.path_hooks], sys.path)
print([entry for entry in sys.path_importer_cache if "preload" in entry.replace("tests/preload", "")])
print([vars(finder).get("__doc__") for finder in sys.meta_path], __import__)
