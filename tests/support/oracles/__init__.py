"""What must come out, found by other means than the product's own code."""
