"""The tools for research: meta-training, evaluation, experiments, checkpoints, presets, the demonstration."""
