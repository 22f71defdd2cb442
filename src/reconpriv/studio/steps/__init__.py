"""The steps of the studio, in the order in which a user takes them."""
