"""Spark: the same release from many machines. An extra."""
