"""The exit codes of commands: what they established. Errors and reports say which is theirs; commands return it."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """How a command ended."""

    meaning: str

    def __new__(cls, number: int, meaning: str) -> ExitCode:
        """Make a number that says what it means."""
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning = meaning
        return code

    GOOD = 0, "it was done, and what was to be checked was checked and is right"
    FINDINGS = 1, "the check found something"
    BAD_INPUT = 2, "an argument or a file cannot be used"
    NOT_ESTABLISHED = 3, "nothing was found, but not all that was to be checked could be"
    INTERRUPTED = 130, "Ctrl-C ended it"


def exit_code(*, findings: bool, is_established: bool = True, is_interrupted: bool = False) -> ExitCode:
    """What a check comes to.

    >>> exit_code(findings=False).name, exit_code(findings=False, is_established=False).name
    ('GOOD', 'NOT_ESTABLISHED')
    >>> exit_code(findings=True, is_established=False).name
    'FINDINGS'
    """
    if is_interrupted:
        return ExitCode.INTERRUPTED
    if findings:
        return ExitCode.FINDINGS
    return ExitCode.GOOD if is_established else ExitCode.NOT_ESTABLISHED
