"""Where spaces come from: files, words, and the catalogue of what can be loaded."""
