"""What a publication promises: policies, presets, sample sizes, what counts as exposed."""
