"""What a publication promises: policies, presets, sampling rules, what counts as exposed."""
