"""The gate for continuous integration: GitHub's summary and annotations, JUnit, and a workflow file."""
