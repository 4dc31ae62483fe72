"""Texts and labels: words, frequencies, corpora, episodes, file formats, known data sets."""
