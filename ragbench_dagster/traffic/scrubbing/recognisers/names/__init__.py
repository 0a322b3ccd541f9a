"""Names of people: announced, listed, in pairs, or alone."""
