import warnings

print(
    [
        (action, category.__name__, module and getattr(module, "pattern", module), line)
        for action, message, category, module, line in warnings.filters
        if message is None and category.__module__ == "builtins"
    ]
)
warnings.warn("deprecated here", DeprecationWarning)
warnings.warn("for users")
