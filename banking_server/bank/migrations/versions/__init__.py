"""One module for each format: how to get there from the one before, and its tables in SQL."""
