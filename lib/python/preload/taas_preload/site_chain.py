"""The user's own `sitecustomize`, whose place this hook has taken."""

import sys

_NAME = "sitecustomize"


def import_users_own() -> Exception | None:
    """Imports it where there is one. Returns what Python's own attempt would have raised, to be raised in each rank."""
    sys.modules.pop(_NAME, None)
    try:
        __import__(_NAME)
    except Exception as error:
        return error.with_traceback(None)
    return None
