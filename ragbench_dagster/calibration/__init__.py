"""The judge is checked against people: agreement, drift, correction."""
