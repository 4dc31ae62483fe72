"""Helpers that do not depend on few-shot learning: array algebra, files, progress bars, parallel maps, paths, shading."""
