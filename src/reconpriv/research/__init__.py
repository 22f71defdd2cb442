"""What writes our documents: the paper's study (section 6) and the attack lab's own."""
