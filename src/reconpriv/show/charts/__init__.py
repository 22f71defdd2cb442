"""Charts as Vega-Lite: one look, no network."""
