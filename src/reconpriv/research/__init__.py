"""What generates our documents: the paper's study (section 6) and that of the attack lab."""
