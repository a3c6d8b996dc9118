"""A function that a decorator is put around, as the text of a program."""

DOUBLED = """
import functools


def doubled(function):
    @functools.wraps(function)
    def wrapper(x):
        return function(x) * 2

    return wrapper


@doubled
def scaled(x):
    return x.sigmoid()

"""
