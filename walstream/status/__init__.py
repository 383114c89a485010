"""How every source and sink is, as `status` and the page show it."""
