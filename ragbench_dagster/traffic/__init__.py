"""Logs in: readers, validation, sampling, scrubbing. Nothing here knows of examples or releases."""
