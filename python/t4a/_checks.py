"""Checks of arguments, and the name in errors of functions that consist of others."""

import re
from functools import wraps
from operator import index

from ._library import ArgumentError, T4aError


def integer(name, x, least=None):
    """An integer, at least `least`; numbers with a fractional part are not rounded."""
    try:
        found = index(x)
    except TypeError as error:
        raise ArgumentError(f"{name}={x!r}: an integer is required") from error
    if least is not None and found < least:
        raise ArgumentError(f"{name}={x!r}: an integer of at least {least} is required")
    return found


def integers(name, x, least=None):
    """A tuple of integers."""
    try:
        found = tuple(x)
    except TypeError as error:
        raise ArgumentError(f"{name}={x!r}: a list of integers is required") from error
    return tuple(integer(f"{name}[{i}]", n, least) for i, n in enumerate(found))


def fraction(name, x):
    """A nonnegative number or None, as a value that can be hashed."""
    if x is None:
        return None
    try:
        found = -1.0 if isinstance(x, (str, bytes)) else float(x)
    except (TypeError, ValueError):
        found = -1.0
    if not 0 <= found < float("inf"):
        raise ArgumentError(f"{name}={x!r}: a nonnegative number is required")
    return found


def one_of(name, given, known):
    """The value of a name; an error that lists the names for others."""
    if not isinstance(given, str) or given not in known:
        raise ArgumentError(f"{name}={given!r}: one of {', '.join(map(repr, known))} is required")
    return known[given]


def composed(f):
    """A function that consists of others: their errors have its name."""

    @wraps(f)
    def named(*operands, **options):
        try:
            return f(*operands, **options)
        except T4aError as error:
            error.args = (re.sub(r"^\w+(?=: )", f.__name__, error.args[0]),)
            raise

    return named
