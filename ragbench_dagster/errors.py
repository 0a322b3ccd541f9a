"""The errors that are the user's to mend. Anything else is a bug and shows its traceback."""


class UserError(Exception):
    """A fault in the input, the settings or the machine, told in one line.

    The message names the file, the key or the row, and what to do. It never holds the text of a
    question or an answer. The command line prints it and exits with 2.
    """


class RunFailed(Exception):
    """A Dagster run failed through a fault of ours; the message holds no user text. Exit code 2."""


class Interrupted(Exception):
    """The user or the system asked to stop; everything finished was committed. Exit code 130."""
