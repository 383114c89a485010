"""The names under which log fields and metrics appear: one word a thing."""

from typing import Final

SOURCE: Final = "source"
SINK: Final = "sink"
TABLE: Final = "table"
TOPIC: Final = "topic"
LSN: Final = "lsn"
SLOT: Final = "slot"
ERROR: Final = "error"
HINT: Final = "hint"
REPAIR: Final = "repair"
THEN: Final = "then"
