"""How hypothesis runs here: no deadlines (machines differ), failures replayable."""

from hypothesis import settings

settings.register_profile("walstream", deadline=None, print_blob=True)
settings.load_profile("walstream")
