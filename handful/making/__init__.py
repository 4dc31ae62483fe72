"""Creation of the files that ship with the package, the attention generator and the word table, and of a sentence encoder."""
