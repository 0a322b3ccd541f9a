"""One module a kind of personal data: each takes a text and returns spans. The registry is in `recogniser.py`."""
