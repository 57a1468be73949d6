#!/usr/bin/env python3
"""openmetrics.py KILN: what `kiln stats --openmetrics` prints is OpenMetrics text by a parser of its
own, and tells the same numbers as --json."""
import json
import os
import re
import subprocess
import sys
import tempfile

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
SAMPLE = re.compile(rf'^({NAME})\{{((?:{NAME}="(?:[^"\\\n]|\\["\\n])*",?)*)\}} ([0-9.]+)$')
SUFFIX = {"counter": "_total", "gauge": ""}


def parse(text):
    """Families in order: name -> (type, unit, value). Dies on what the format does not allow."""
    lines = text.split("\n")
    assert lines[-2:] == ["# EOF", ""], "does not end with # EOF and a line end"
    families, current = {}, None
    for line in lines[:-2]:
        words = line.split(" ", 3)
        if words[0] == "#":
            assert words[1] in ("HELP", "TYPE", "UNIT"), line
            if words[2] != current:
                assert words[2] not in families, f"{words[2]} comes twice"
                current = words[2]
                families[current] = {"HELP": None, "TYPE": None, "UNIT": None, "value": None}
            assert families[current][words[1]] is None and families[current]["value"] is None, line
            families[current][words[1]] = words[3]
            continue
        match = SAMPLE.match(line)
        assert match, f"not a sample: {line!r}"
        family = families[current]
        assert match[1] == current + SUFFIX[family["TYPE"]], line
        assert family["HELP"] and family["value"] is None, line
        if family["UNIT"]:
            assert current.endswith("_" + family["UNIT"]), line
        family["value"] = float(match[3])
    for name, family in families.items():
        assert family["value"] is not None, f"{name} has no sample"
    return families


def main():
    kiln = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        cache = os.path.join(folder, 'a "quoted" \\ folder')
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_")}
        environment["KILN_CACHE_DIR"] = cache
        kernel = os.path.join(folder, "one.fake")
        with open(kernel, "w", encoding="utf-8") as file:
            file.write("kernel one x:floats\nx = x 1 +\n")
        for _ in range(2):
            subprocess.run([kiln, "compile", kernel, "-t", "fake:0"], env=environment, check=True,
                           stdout=subprocess.DEVNULL)
        text = subprocess.run([kiln, "stats", "--openmetrics"], env=environment, check=True,
                              stdout=subprocess.PIPE, text=True).stdout
        told = json.loads(subprocess.run([kiln, "stats", "--json"], env=environment, check=True,
                                         stdout=subprocess.PIPE, text=True).stdout)
    families = parse(text)
    assert families["kiln_cache_entries"]["value"] == told["entries"] > 0
    assert families["kiln_cache_size_bytes"]["value"] == told["bytes"] > 0
    for name, value in told["counters"].items():
        seconds = name.endswith("_ns")
        family = families["kiln_cache_" + (name[:-3] + "_seconds" if seconds else name)]
        assert abs(family["value"] - (value / 1e9 if seconds else value)) < 1e-6, name
    assert told["counters"]["compiles"] > 0 and told["counters"]["saved_ns"] > 0
    print(f"{len(families)} families")


if __name__ == "__main__":
    main()
