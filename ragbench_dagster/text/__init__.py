"""Words, numbers and untrusted text, for every stage. Nothing here knows of requests, examples or nights."""
