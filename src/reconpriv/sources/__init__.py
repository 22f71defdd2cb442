"""Tables as they come: files, data frames, databases. No more is fetched than is asked for."""
