#!/usr/bin/env python3
"""charts.py [--check]: docs/charts/*.svg, drawn from bench/results/*.json. --check only says whether they are
up to date. Readable on light and on dark pages; no figure is written here."""
import json
import math
import re
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench/results"
CHARTS = ROOT / "docs/charts"
STYLE = """  <style>
    text { font: 13px system-ui, sans-serif; fill: #1f2328 }
    .title { font-size: 16px; font-weight: 600 }
    .small { font-size: 11px; fill: #59636e }
    .grid { stroke: #d1d9e0; stroke-width: 1 }
    .span { stroke: #8c959f; stroke-width: 3 }
    .a { fill: #b35900 } .b { fill: #0969da } .c { fill: #6e7781 } .d { fill: #8250df } .e { fill: #1a7f37 }
    @media (prefers-color-scheme: dark) {
      text { fill: #f0f6fc } .small { fill: #9198a1 } .grid { stroke: #3d444d } .span { stroke: #656c76 }
      .a { fill: #f0883e } .b { fill: #58a6ff } .c { fill: #9198a1 } .d { fill: #bc8cff } .e { fill: #3fb950 }
    }
  </style>"""
WIDTH, LEFT, RIGHT = 760, 250, 80
SIZES = {"title": 16, "small": 11}  # of STYLE; others have 13


def table(name, first):
    """Header and rows of the table in bench/results/NAME.json whose first column is `first`."""
    results = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    for found in results["tables"]:
        if found["columns"][0] == first and found["rows"]:
            return [found["columns"]] + found["rows"]
    sys.exit(f"charts: bench/results/{name}.json has no table {first!r}")


def number(cell):
    """The leading number of a cell, or None."""
    found = re.match(r"([\d,]+(?:\.\d+)?)", cell)
    return float(found[1].replace(",", "")) if found else None


def plain(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2g}"


def width_of(text, kind=""):
    """About as wide as a sans-serif font has it."""
    return 0.54 * SIZES.get(kind, 13) * len(text)


class Chart:
    def __init__(self, name, title, what, note):
        self.name, self.title, self.note = name, title, note
        self.body, self.y, self.what = [], 60, what
        self.boxes = []  # of the texts: left, top, right, bottom, text

    def take_room(self, x, y, text, kind, anchor):
        size, width = SIZES.get(kind, 13), width_of(text, kind)
        left = x - {"start": 0, "middle": width / 2, "end": width}[anchor]
        self.boxes.append((left, y - 0.75 * size, left + width, y + 0.2 * size, text))

    def overlaps(self):
        """Texts that run into each other or out of the picture, a line each."""
        found = [f"{text!r} runs out of the picture" for left, _, right, _, text in self.boxes
                 if left < 0 or right > WIDTH]
        for i, (left, top, right, bottom, text) in enumerate(self.boxes):
            found += [f"{text!r} runs into {other[4]!r}" for other in self.boxes[i + 1:] if text and other[4]
                      and left < other[2] and other[0] < right and top < other[3] and other[1] < bottom]
        return found

    def text(self, x, y, text, kind="", anchor="start"):
        self.take_room(x, y, text, kind, anchor)
        self.body.append(f'  <text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}"'
                         + (f' class="{kind}"' if kind else "") + f">{escape(text)}</text>")

    def legend(self, items):
        x = LEFT
        for kind, label in items:
            self.body.append(f'  <circle cx="{x}" cy="{self.y - 5}" r="5" class="{kind}"/>')
            self.text(x + 10, self.y, label)
            x += 34 + 7 * len(label)
        self.y += 26

    def axis(self, low, high, rows, step, log):
        self.low, self.high, self.log = low, high, log
        ticks = [10 ** e for e in range(round(math.log10(low)), round(math.log10(high)) + 1)] \
            if log else range(0, int(high) + 1, step)
        bottom = self.y + rows * 30 - 6
        for tick in ticks:
            x = self.x(tick)
            self.body.append(f'  <line x1="{x:.0f}" x2="{x:.0f}" y1="{self.y - 14}" y2="{bottom}" class="grid"/>')
            self.text(x, bottom + 16, f"{tick:g}", "small", "middle")
        self.text(WIDTH - RIGHT, bottom + 32, self.what, "small", "end")
        self.end = bottom + 46

    def x(self, value):
        share = (math.log10(value / self.low) / math.log10(self.high / self.low)) if self.log \
            else (value - self.low) / (self.high - self.low)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def dots(self, label, points):
        """One row of points (kind, value), joined by a line."""
        xs = [self.x(value) for _, value in points]
        self.text(LEFT - 14, self.y + 4, label, "", "end")
        self.body.append(f'  <line x1="{min(xs):.0f}" x2="{max(xs):.0f}" y1="{self.y}" y2="{self.y}" class="span"/>')
        for (kind, value), x in zip(points, xs):
            self.body.append(f'  <circle cx="{x:.0f}" cy="{self.y}" r="6" class="{kind}">'
                             f"<title>{plain(value)}</title></circle>")
        ordered = sorted(zip(xs, points))
        least = plain(ordered[0][1][1])
        if ordered[0][0] - 10 - width_of(least, "small") < LEFT - 8:  # there is the row's name
            self.text(ordered[0][0], self.y - 9, least, "small", "middle")
        else:
            self.text(ordered[0][0] - 10, self.y + 4, least, "small", "end")
        self.text(ordered[-1][0] + 10, self.y + 4, plain(ordered[-1][1][1]), "small")
        self.y += 30

    def bar(self, label, kind, value, said):
        self.text(LEFT - 14, self.y + 4, label, "", "end")
        self.body.append(f'  <rect x="{LEFT}" y="{self.y - 9}" width="{max(self.x(value) - LEFT, 2):.0f}" '
                         f'height="18" rx="2" class="{kind}"/>')
        self.text(self.x(value) + 8, self.y + 4, said, "small")
        self.y += 30

    def write(self, check):
        height = self.end + 22
        self.take_room(16, 28, self.title, "title", "start")
        self.take_room(16, height - 12, self.note, "small", "start")
        if self.overlaps():
            sys.exit(f"charts: {self.name}: " + "; ".join(self.overlaps()))
        svg = "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
                         f'width="{WIDTH}" height="{height}" role="img">',
                         f"  <title>{escape(self.title)}</title>",
                         f"  <desc>{escape(self.note)}</desc>", STYLE] + self.body) + "\n"
        svg += f'  <text x="16" y="28" class="title">{escape(self.title)}</text>\n'
        svg += f'  <text x="16" y="{height - 12}" class="small">{escape(self.note)}</text>\n</svg>\n'
        path = CHARTS / f"{self.name}.svg"
        if check:
            return path.exists() and path.read_text(encoding="utf-8") == svg
        CHARTS.mkdir(exist_ok=True)
        path.write_text(svg, encoding="utf-8")
        return True


def backends():
    chart = Chart("backends", "Cold and warm start, time to first result", "ms, logarithmic",
                  "kiln; software drivers on two shared cores, and one NVIDIA H200. docs/benchmarks.md, 2026-11-21")
    rows = [(row[0], number(row[1]), number(row[2])) for row in
            table("demo", "backend")[1:]
            if row[0].startswith(("opencl", "cpu"))]
    for row in table("warm_drivers", "driver")[1:]:
        driver = row[0].split(",")
        if driver[0] in ("lavapipe", "llvmpipe"):
            name = {"lavapipe": "vulkan", "llvmpipe": "opengl"}[driver[0]] + f": {row[0]}"
        else:
            name = f"{driver[-1].strip().lower()}: {driver[0]}"
        if driver[0] != "the same":
            rows.append((name, number(row[4]), number(row[1])))
    kernel = ""
    for row in table("cuda", "kernel")[1:]:
        kernel = row[0] or kernel
        if row[1] == "kiln":
            rows.append((f"cuda: NVIDIA H200, kernel {kernel[:3]}", number(row[2]), number(row[3])))
    chart.legend([("a", "cold"), ("b", "warm")])
    chart.axis(0.1, 10000, len(rows), 0, True)
    for label, cold, warm in rows:
        chart.dots(label, [("a", cold), ("b", warm)])
    return chart


def cuda():
    chart = Chart("cuda", "CUDA, warm start: time to first result", "ms, logarithmic",
                  "One NVIDIA H200, NVRTC 13.0, medians of 8 fresh processes. docs/benchmarks.md, 2026-11-21")
    found, kernel = {}, ""
    for row in table("cuda", "kernel")[1:]:
        kernel = row[0] or kernel
        warm = number(row[2] if row[3] == "the same" else row[3])
        found.setdefault(kernel, {})[row[1].split(",")[0]] = warm
    kinds = [("c", "bare CUBIN", "bare CUBIN"), ("b", "kiln", "kiln"), ("e", "cuda.core", "cuda.core"),
             ("d", "CuPy", "CuPy 14.2 RawModule"), ("a", "plain NVRTC", "plain NVRTC and driver")]
    chart.legend([(kind, label) for kind, label, _ in kinds])
    chart.axis(0.1, 10000, len(found), 0, True)
    for kernel, ways in found.items():
        points = [(kind, next(value for way, value in ways.items() if way.startswith(name)))
                  for kind, _, name in kinds]
        label = re.sub(r"cooperative groups", "coop. groups", kernel).replace("cub/block/", "")
        chart.dots(label, points)
    return chart


def cluster():
    chart = Chart("cluster", "A cluster starts cold: how often one kernel is compiled", "compiles",
                  "Processes that stand for machines, each with a disk of its own. docs/benchmarks.md, 2026-11-21")
    rows = table("cluster", "machines")[1:]
    most = max(number(row[3]) for row in rows)
    chart.legend([("b", "with one Redis"), ("a", "without")])
    chart.axis(0, most, 2 * len(rows), 4, False)
    for row in rows:
        chart.bar(f"{row[0]} machines", "b", number(row[1]), f"{row[1]}, all ready after {row[2]} ms")
        chart.bar("", "a", number(row[3]), row[3] if number(row[3]) > 16 else f"{row[3]}, {row[4]} ms")
    return chart


def disk():
    chart = Chart("disk", "A hit on disk, verified, beside others that read the same bytes",
                  "us of a thread's time, logarithmic",
                  "Files, LMDB and SQLite without a checksum. docs/benchmarks.md, section Cache, 2026-11-21")
    rows = table("cache", "disk hit, us")
    chart.legend([("b", "kiln"), ("c", "files"), ("d", "LMDB"), ("a", "SQLite")])
    chart.axis(0.1, 1000, len(rows) - 1, 0, True)
    for row in rows[1:]:
        chart.dots(row[0], [("c", number(row[2])), ("d", number(row[3])), ("a", number(row[4])),
                            ("b", number(row[1]))])
    return chart


def main():
    check = "--check" in sys.argv
    old = [chart.name for chart in (backends(), cuda(), cluster(), disk()) if not chart.write(check)]
    for name in old:
        print(f"docs/charts/{name}.svg is older than bench/results: scripts/charts.py")
    sys.exit(1 if old else 0)


if __name__ == "__main__":
    main()
