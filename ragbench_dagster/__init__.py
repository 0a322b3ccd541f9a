"""Ragbench: a nightly benchmark from the questions people really ask a RAG system."""

__version__ = "0.1.0"
