"""Names of keys that hold secrets, wherever they are.

One list for libpq, librdkafka, SQLAlchemy's URLs and Spark: a key that is masked
without need costs nothing, one that is shown costs a password.
"""

import re
from typing import Final

MASK: Final = "***"

HIDDEN_WORDS: Final = (
    r"password|passwd|passphrase|pwd|secret|token|jaas|credential|api[._-]?key"
    r"|access[._-]?key|private[._-]?key(?:[._-]?pem|(?![\w.-]))|key\.pem|oauthbearer\.config"
    # of Hadoop's file systems: their names end in an account's or a bucket's
    r"|account[._-]key(?!provider)|[._-]sas\.|encryption\.key(?![\w.-])"
    r"|user\.info"  # basic.auth.user.info: a user's name and password
    r"|assertion\.jwt\.payload|scram_\w+_key"
)
_SECRET: Final = re.compile(HIDDEN_WORDS, re.IGNORECASE)
_PUBLIC: Final = re.compile(  # named like a secret, and only points somewhere
    r"(?:\.endpoint\.url|\.location|\.file|passfile|password_command)$", re.IGNORECASE
)


def is_secret_key(key: str) -> bool:
    """Return whether the value under this key must never be shown."""
    return bool(_SECRET.search(key)) and not _PUBLIC.search(key)
