"""Text: patterns, names of files, entities, CSV, words to search for."""
