"""Results that can be read: as text anywhere, and as HTML in a notebook."""

from __future__ import annotations


class Readable:
    """A result whose text and HTML are made by :mod:`reconpriv.show`.

    This is the one place where a lower layer calls a higher one. Showing knows every kind of
    result, and imports rich, so it is imported when something is shown and not before.
    """

    def __str__(self) -> str:
        """The result as text."""
        from reconpriv.show.results import text_of  # noqa: PLC0415 - see above

        return text_of(self)

    def __repr__(self) -> str:
        """The same, so that a prompt shows what print would."""
        return str(self)

    def _repr_html_(self) -> str:
        from reconpriv.show.results import html_of  # noqa: PLC0415 - see above

        return html_of(self)
