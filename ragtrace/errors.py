"""Errors a user can act on. One root; every message says what is wrong, where, and what to do.

RagtraceError
├── ConfigurationError (ValueError)   wrong names or types at configure() or at decoration
├── IntegrationError
│   ├── NotInstalledError             the framework or extra is not installed
│   └── UnsupportedVersionError
├── SpoolError
│   └── CorruptSpoolError
├── StoreError                        exit code 2 (user's mistake) unless it says otherwise
│   ├── StoreNotFoundError
│   ├── SchemaVersionError            the file is newer than this ragtrace
│   └── DamagedStoreError             exit code 3
├── GoldError                         a gold file that cannot be loaded: path, line, reason
└── ReportError
    ├── ReportNotFoundError
    ├── HeaderError
    ├── ParameterError
    ├── QuestionNotFoundError         carries the nearest questions
    └── NotReplayableError            exit code 3: the record does not say enough to replay a change
"""

from __future__ import annotations

__all__ = [
    "ConfigurationError",
    "CorruptSpoolError",
    "DamagedStoreError",
    "GoldError",
    "HeaderError",
    "IntegrationError",
    "NotInstalledError",
    "NotReplayableError",
    "ParameterError",
    "QuestionNotFoundError",
    "RagtraceError",
    "ReportError",
    "ReportNotFoundError",
    "SchemaVersionError",
    "SpoolError",
    "StoreError",
    "StoreNotFoundError",
    "UnsupportedVersionError",
]


class RagtraceError(Exception):
    """Root of all ragtrace errors. `fields` survive pickling and are shown by `--format json`."""

    exit_code = 2

    def __init__(self, message: str, **fields: object) -> None:
        super().__init__(message)
        self.message = message
        self.fields = fields

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.message, self.fields))


def _rebuild(kind: type[RagtraceError], message: str, fields: dict[str, object]) -> RagtraceError:
    return kind(message, **fields)


class ConfigurationError(RagtraceError, ValueError):
    """A wrong argument name, type or value at configure() or at decoration."""


class IntegrationError(RagtraceError):
    """A framework integration cannot be enabled."""


class NotInstalledError(IntegrationError):
    """The package or extra that is needed is not installed."""


class UnsupportedVersionError(IntegrationError):
    """The installed framework is older or newer than what was tested."""


class SpoolError(RagtraceError):
    """The spool folder cannot be read."""

    exit_code = 3


class CorruptSpoolError(SpoolError):
    """A log's bytes do not hold their checksum."""


class StoreError(RagtraceError):
    """The database cannot be used as asked."""


class StoreNotFoundError(StoreError):
    """There is no store and no spool at this path."""


class SchemaVersionError(StoreError):
    """The file was written by a newer ragtrace."""


class DamagedStoreError(StoreError):
    """DuckDB cannot open the file."""

    exit_code = 3


class GoldError(RagtraceError):
    """A gold file has a line that cannot be loaded."""


class ReportError(RagtraceError):
    """A report cannot be run."""


class ReportNotFoundError(ReportError):
    """No report of this name."""


class HeaderError(ReportError):
    """A .sql file's header does not fit its statement."""


class ParameterError(ReportError):
    """A report's parameter is missing, unknown or of the wrong type."""


class QuestionNotFoundError(ReportError):
    """No recorded query fits; `fields['nearest']` holds the nearest ones."""


class NotReplayableError(ReportError):
    """Nothing of what was asked for follows from the recorded lists."""

    exit_code = 3
