#!/usr/bin/env python3
"""grafana.py KILN DASHBOARD.json: every metric that the dashboard asks for is in what `kiln stats --openmetrics` prints, every
label is one that its samples have (or that Prometheus adds), and the file has the form of a dashboard as far as can be
looked at without Grafana: unique ids, panels that lie on the grid and do not overlap, data sources, variables that exist,
queries with balanced brackets."""
import json
import os
import re
import subprocess
import sys
import tempfile

METRIC = re.compile(r"\bkiln_\w+")
SELECTOR = re.compile(r"\bkiln_\w+\{([^}]*)\}")
VARIABLE = re.compile(r"\$\{?(\w+)")
BUILT_IN = {"__rate_interval", "__range", "__interval"}
PROMETHEUS = {"instance", "job"}  # labels of every scraped sample
KINDS = {"stat", "timeseries", "table", "row"}


def printed(kiln):
    """Names and labels of the samples, bypasses included."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_") or k == "KILN_LIBEXEC"}
        environment["KILN_CACHE_DIR"] = os.path.join(folder, "cache")
        kernel = os.path.join(folder, "one.fake")
        with open(kernel, "w", encoding="utf-8") as file:
            file.write("kernel one x:floats\nx = x 1 +\n")
        subprocess.run([kiln, "compile", kernel, "-t", "fake:0", "-X", "-file=other"], env=environment, check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = subprocess.run([kiln, "stats", "--openmetrics"], env=environment, check=True, text=True,
                              stdout=subprocess.PIPE).stdout
    samples = re.findall(r"(?m)^(\w+)\{(.*)\} ", text)
    return {name: set(re.findall(r'(\w+)="', labels)) for name, labels in samples}


def check_query(query, metrics, variables):
    bare = re.sub(r'"[^"]*"', '""', query)
    for left, right in ("()", "[]", "{}"):
        assert bare.count(left) == bare.count(right), query
    names = METRIC.findall(query)
    assert names, f"asks for no metric of kiln: {query}"
    for name in names:
        assert name in metrics, f"{name} is not in what kiln prints: {query}"
        if name.endswith("_total"):
            assert re.search(rf"(rate|increase)\({name}\b", query), f"{name} is a counter and not in rate(): {query}"
    labels = {word for selector in SELECTOR.findall(query) for word in re.findall(r"(\w+)\s*[=!]~?", selector)}
    labels |= {word.strip() for group in re.findall(r"by \(([^)]*)\)", query) for word in group.split(",")}
    there = set.intersection(*(metrics[name] for name in names)) | PROMETHEUS
    assert labels <= there, f"labels {labels - there}: {query}"
    assert set(VARIABLE.findall(query)) <= variables | BUILT_IN, query


def check_places(panels):
    taken = {}
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] >= 0 and place["x"] + place["w"] <= 24 and place["w"] > 0 and place["h"] > 0, panel["title"]
        for x in range(place["x"], place["x"] + place["w"]):
            for y in range(place["y"], place["y"] + place["h"]):
                assert (x, y) not in taken, f"{panel['title']} lies on {taken[x, y]}"
                taken[x, y] = panel["title"]


def main():
    metrics = printed(os.path.abspath(sys.argv[1]))
    with open(sys.argv[2], encoding="utf-8") as file:
        board = json.load(file)
    assert board["title"] and re.fullmatch(r"[\w-]{1,40}", board["uid"]) and board["schemaVersion"] >= 36
    assert "id" not in board and "__inputs" not in board, "an exported dashboard's leftovers"
    assert {"from", "to"} <= board["time"].keys()
    variables = {one["name"] for one in board["templating"]["list"]}
    assert {"query", "datasource"} >= {one["type"] for one in board["templating"]["list"]}
    panels = board["panels"]
    ids = [panel["id"] for panel in panels]
    assert len(set(ids)) == len(ids)
    check_places(panels)
    queries = 0
    for one in board["templating"]["list"]:
        if one["type"] == "query":
            query = re.fullmatch(r"label_values\((.*), (\w+)\)", one["query"]["query"])
            check_query(query[1], metrics, variables)
            assert query[2] in metrics[METRIC.search(query[1])[0]] | PROMETHEUS
    for panel in panels:
        assert panel["type"] in KINDS and panel["title"], panel
        if panel["type"] == "row":
            continue
        assert panel["description"] and panel["fieldConfig"]["defaults"]["unit"], panel["title"]
        assert panel["datasource"]["uid"] == "${datasource}", panel["title"]
        letters = [target["refId"] for target in panel["targets"]]
        assert letters and len(set(letters)) == len(letters), panel["title"]
        for target in panel["targets"]:
            check_query(target["expr"], metrics, variables)
            queries += 1
    asked = set(METRIC.findall(json.dumps(board)))
    print(f"{len(panels)} panels, {queries} queries, {len(asked)} of {len(metrics)} metrics")


if __name__ == "__main__":
    main()
