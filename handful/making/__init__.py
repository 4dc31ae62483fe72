"""Creation of the files that ship with the package: the attention generator, the word table and the sentence encoder."""
