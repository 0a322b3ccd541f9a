"""The version of the embedded judge. Raise it with every change that may change a score: verdicts are kept by it."""

VERSION = "embedded-1"
