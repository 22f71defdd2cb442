"""The paper's mathematics: numpy and scipy only, no input or output, no randomness."""
