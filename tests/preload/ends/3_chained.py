try:
    {}["absent"]
except KeyError as error:
    raise ValueError("chained") from error
