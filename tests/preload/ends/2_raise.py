def inner(value):
    return 1 / value


inner(0)
