"""Errors of reports and figures."""

from narrows.errors import EXIT_USAGE, DataError


class ReportError(DataError):
    """No report can be made of a campaign folder; the message is one sentence with a remedy."""


class UnknownNameError(ReportError):
    """The requested figure, scheme, value, run or flow does not exist; the message lists the
    existing ones.
    """

    exit_code = EXIT_USAGE
