"""`walstream run` at a terminal: lines for people, and a status line that renews."""
