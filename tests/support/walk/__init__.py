"""A random walk over what people do to a database under walstream, and its oracle.

`tables` writes rows, `changes` everything else, `oracle` says what the topics must
hold, `runner` does the steps on real servers, `walk` draws them from a seed.
"""
