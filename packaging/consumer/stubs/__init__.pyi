# walstream_consumer, for type checkers: its names are those of `consumer`. They take a
# single module's types from a package of stubs alone.
from consumer import *  # noqa: F403 - whatever it offers
from consumer import __all__ as __all__
