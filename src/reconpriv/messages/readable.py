"""Results that can be read: as text anywhere, as HTML in a notebook, and some as a chart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reconpriv.messages.arguments import checked

if TYPE_CHECKING:
    from reconpriv.show.charts.chart import Chart


class Readable:
    """A result whose text and HTML are made by :mod:`reconpriv.show`.

    This is the one place where a lower layer calls a higher one. Showing knows every kind of
    result, and imports rich, so it is imported when something is shown and not before.
    """

    def __str__(self) -> str:
        from reconpriv.show.results.registered import text_of  # noqa: PLC0415 - see above

        return text_of(self)

    def __repr__(self) -> str:
        """The same, so that a prompt shows what print would."""
        return str(self)

    def _repr_html_(self) -> str:
        from reconpriv.show.results.registered import html_of  # noqa: PLC0415 - see above

        return html_of(self)


class Plottable(Readable):
    """A result that has a chart: estimates with their intervals."""

    @checked
    def plot(self, *, most: int = 40, order: str = "auto") -> Chart:
        """Draw the estimates with their intervals; a notebook shows the chart.

        :param most: how many rows are drawn; if there are more, the chart says so.
        :param order: "table" keeps the order of the rows, "value" puts the largest first; "auto"
            does that only if the rows are names in alphabetical order.

        ``plot().save("chart.html")`` writes a file: .html, .svg, .png, or .json (Vega-Lite).
        """
        from reconpriv.show.results.registered import chart_of  # noqa: PLC0415 - see Readable

        return chart_of(self, most=most, order=order)
