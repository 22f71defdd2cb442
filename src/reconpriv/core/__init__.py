"""The protection itself: cells in, published cells or verdicts out. No input or output."""
