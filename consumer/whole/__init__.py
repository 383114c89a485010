"""Whole transactions: how a reader of many partitions puts them together again."""
