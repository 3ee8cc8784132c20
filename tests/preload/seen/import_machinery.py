import sys

print([repr(finder) for finder in sys.meta_path if "torch" not in repr(finder)], len(sys.path_hooks))
print([entry for entry in sys.path_importer_cache if "preload" in entry.replace("tests/preload", "")])
