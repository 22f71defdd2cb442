"""What a publisher does with a table: audit it, publish it, choose a policy for it."""
