"""Exports of tracing tools (`traffic.format: langfuse | openinference`): the spans of a trace become one request."""
