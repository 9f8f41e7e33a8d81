"""Jobs of the crawler Heritrix, read as profiles."""
