"""Speed, measured beside the limit in the same run. Prints figures; tests nothing."""
