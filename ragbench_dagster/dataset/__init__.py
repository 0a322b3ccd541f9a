"""Requests to releases: deduplication, the window, labels, frozen releases."""
