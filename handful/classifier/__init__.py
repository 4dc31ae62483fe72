"""The practitioner's side: FewShotClassifier, what it has learned, its labels, explanations, suggestions and saved form."""
