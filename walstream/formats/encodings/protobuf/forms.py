"""Names in the messages that walstream makes of what proto3 has no form for.

    message ArrayOfString {       message MapOfStringToString {
      repeated string items = 1;    repeated Entry entries = 1;
      repeated int32 nulls = 2;     message Entry { string key = 1; … value = 2; }
    }                             }

`nulls` has the places, from 0 on, of items that are null.
"""

from typing import Final

ARRAY: Final = "ArrayOf"
ITEMS: Final = "items"
NULLS: Final = "nulls"
MAP: Final = "MapOf"
ENTRIES: Final = "entries"
ENTRY: Final = "Entry"
KEY: Final = "key"
VALUE: Final = "value"
OF_ITEMS: Final = "items: "
