"""The pieces that sentences are made of; everything else may use them."""
