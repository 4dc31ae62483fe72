"""A classifier applied to files of any size: fitting, predicting and scoring, resumable and distributed over workers."""
