"""Status of every source and sink, for `status` and the page."""
