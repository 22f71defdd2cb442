"""The paper's empirical study (section 6), one file per figure or table."""
