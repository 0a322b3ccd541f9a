"""Makes the fixtures of `tests.support.sample_workspace` known to this folder's tests."""

from tests.support.sample_workspace import make_workspace  # noqa: F401
