"""The protection itself: cells in, published cells out."""
