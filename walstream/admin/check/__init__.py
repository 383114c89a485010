"""The findings of `walstream check`, by what they are about."""
