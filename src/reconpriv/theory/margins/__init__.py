"""What noisy margins tell, and what their noise costs."""
