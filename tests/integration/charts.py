#!/usr/bin/env python3
"""charts.py SCRIPTS: scripts/charts.py sees texts that run into each other or out of the picture, and no chart
of the documentation has any."""
import sys

sys.path.insert(0, sys.argv[1])
import charts  # noqa: E402


def overlaps(*texts):
    chart = charts.Chart("test", "A title", "ms", "A note")
    for x, y, text, anchor in texts:
        chart.text(x, y, text, "", anchor)
    return chart.overlaps()


def expect(found, wanted):
    if found != wanted:
        sys.exit(f"found {found}, not {wanted}")


expect(overlaps((100, 100, "left", "start"), (200, 100, "right", "start")), [])
expect(overlaps((100, 100, "the name", "end"), (90, 104, "0.15", "start")), ["'the name' runs into '0.15'"])
expect(overlaps((100, 100, "one", "middle"), (100, 116, "below", "middle")), [])
expect(overlaps((750, 100, "too far", "start")), ["'too far' runs out of the picture"])

# The least value of a row whose first dot is next to the row's name, as in cuda.svg.
chart = charts.Chart("test", "A title", "ms", "A note")
chart.axis(0.1, 10000, 1, 0, True)
chart.dots("a trivial kernel", [("a", 0.15), ("b", 30)])
expect(chart.overlaps(), [])

for make in (charts.backends, charts.cuda, charts.cluster, charts.disk):
    expect(make().overlaps(), [])
