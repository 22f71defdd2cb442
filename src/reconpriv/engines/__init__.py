"""Engines count and write; they hold no formula of the paper."""
