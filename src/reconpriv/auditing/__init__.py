"""What is found out about a table before it is published."""
