"""Pieces of the page that the steps put together."""
