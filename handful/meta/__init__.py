"""Tools for research: meta-training, evaluation, runs, checkpoints, presets and the demonstration."""
