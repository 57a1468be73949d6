#!/usr/bin/env python3
"""report_page.py KILN [DIRECTORY]: the pages of `kiln report` in headless Chromium, at two widths: their
script runs without errors, they load nothing, run nothing that an entry's name holds, are no wider than the window,
sort and filter their tables, and show all sections, also with no entry and with 10,000. With DIRECTORY,
screenshots are left there, light and dark."""
import html
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOSTILE = "<img src=x onerror=document.title='run'>"
# Sorts and filters the table of programs and notes what the page then is; the answer is read from the dumped document.
PROBE = """
<script>
addEventListener("error", event => { document.body.dataset.error = event.message; });
</script>
"""
LOADED = """
<script>
addEventListener("load", () => {
  const table = [...document.querySelectorAll("table")].find(t => t.textContent.includes("KEEP"));
  const column = [...table.tHead.rows[0].cells].findIndex(c => c.textContent === "size");
  const units = { B: 1, KiB: 1024, MiB: 1048576 };
  const size = text => Number(text.split(" ")[0]) * units[text.split(" ")[1]];
  const sizes = () => [...table.tBodies[0].rows].map(r => size(r.cells[column].textContent));
  const ordered = (a, sign) => a.every((v, i) => i === 0 || sign * (a[i - 1] - v) >= 0);
  const button = table.tHead.rows[0].cells[column].querySelector("button");
  const rows = table.tBodies[0].rows.length;
  button.click();
  const down = ordered(sizes(), 1);
  button.click();
  const up = ordered(sizes(), -1);
  const filter = table.parentElement.previousElementSibling;
  filter.value = "keep";
  filter.dispatchEvent(new Event("input"));
  const kept = [...table.tBodies[0].rows];
  const filtered = kept.length < rows && kept.every(r => r.textContent.includes("KEEP"));
  document.body.dataset.probe = JSON.stringify([rows, down, up, filtered, document.documentElement.scrollWidth <= innerWidth,
    document.images.length, document.title, performance.getEntriesByType("resource").length]);
});
</script>
"""
HEADINGS = {
    "cache": ["Time", "Hits and misses", "Why programs were compiled", "Remotes and errors", "Bypasses", "Programs", "History",
              "Targets", "Sizes", "Stale entries"],
    "recording": ["Languages and targets", "Programs"],
    "fleet": ["Hit rates over time", "Machines", "Time", "Hits and misses", "Why programs were compiled", "Remotes and errors"],
}


def browser():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if shutil.which(name):
            return name
    print("SKIP chromium: it is not installed (apt-get install chromium)")
    sys.exit(77)


def chromium(name, home, *arguments):
    command = [name, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={home}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def make_pages(kiln, folder):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_") or k == "KILN_LIBEXEC"}
    environment["KILN_CACHE_DIR"] = str(folder / "cache")

    def run(*arguments, **more):
        return subprocess.run([kiln, *arguments], env=environment, cwd=folder, check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **more).stdout
    for number in range(12):
        kernel = folder / f"{HOSTILE.replace('/', '')}{number}.fake"
        kernel.write_text("kernel f x:floats\n" + "x = x 1 +\n" * (1 + number * 7 % 12))
        run("compile", kernel.name, "-t", "fake:0", "-D", f"KEEP={HOSTILE}")
    run("compile", kernel.name, "-t", "fake:0", "-X", "-file=other")
    run("report", "--html", "cache.html")
    environment["KILN_CACHE_DIR"] = str(folder / "none")
    run("report", "--html", "empty.html")
    environment["KILN_CACHE_DIR"] = str(folder / "cache")
    log = ""
    for _ in range(3):
        run("compile", kernel.name, "-t", "fake:0", "-D", f"KEEP={HOSTILE}")
        log += run("stats", "--openmetrics", "--timestamps")
    for kernel in sorted(folder.glob("*.fake"))[:3]:
        for value in ("1", "2"):
            environment["KILN_RECORD"] = str(folder / "recording")
            run("compile", kernel.name, "-t", "fake:0", "-D", f"KEEP={value}")
    del environment["KILN_RECORD"]
    run("report", "--html", "recording.html", "recording")
    (folder / "host.prom").write_text(log)
    run("report", "--html", "fleet.html", "--metrics", "host.prom")


def with_entries(page, number):
    """The page with that many entries: copies of its first."""
    before, rest = page.split('<script type="application/json" id="data">')
    data, after = rest.split("</script>", 1)
    report = json.loads(data)
    report["entries"] = [{**report["entries"][0], "key": f"{i:032x}", "compile_ms": i} for i in range(number)]
    return f'{before}<script type="application/json" id="data">{json.dumps(report)}</script>{after}'


def headings(document):
    return re.findall(r"<h2>(.*?)</h2>", document)


def main():
    kiln = os.path.abspath(sys.argv[1])
    name = browser()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        make_pages(kiln, folder)

        def dump(path, width=1280):
            document = chromium(name, folder / "home", f"--window-size={width},1000", "--dump-dom", f"file://{path}")
            assert "data-error" not in document, document[-3000:]
            return document

        page = (folder / "cache.html").read_text(encoding="utf-8")
        # The page's own policy forbids nothing that the probes need: they are inline.
        (folder / "probe.html").write_text(page.replace("<main", PROBE + "<main").replace("</body>", LOADED + "</body>"),
                                           encoding="utf-8")
        (folder / "large.html").write_text(with_entries(page, 10000).replace("<main", PROBE + "<main"), encoding="utf-8")
        for width in (1280, 500): # Chromium's window has 500 columns at least
            told = re.search(r'data-probe="([^"]*)"', dump(folder / "probe.html", width))
            assert told, "the page's script does not run"
            rows, *rest = json.loads(html.unescape(told[1]))
            assert rows >= 12, rows
            assert rest == [True, True, True, True, 0, "kiln: this cache", 0], rest
        for kind, wanted in HEADINGS.items():
            assert headings(dump(folder / f"{kind}.html")) == wanted, kind
        for kind in ("empty", "large"):
            assert headings(dump(folder / f"{kind}.html")) == HEADINGS["cache"], kind
        assert "Show all 10,000 rows" in dump(folder / "large.html")
        recorded = dump(folder / "recording.html")
        assert len(re.findall(">in this cache</td>", recorded)) == 6, recorded
        for kind in (*HEADINGS, "empty", "large") if len(sys.argv) > 2 else ():
            for width in (1280, 400):
                for scheme in (0, 1): # dark, light
                    picture = Path(sys.argv[2]).resolve() / f"{kind}-{width}-{('dark', 'light')[scheme]}.png"
                    chromium(name, folder / "home", f"--window-size={width},2400", f"--screenshot={picture}",
                             f"--blink-settings=preferredColorScheme={scheme}", f"file://{folder}/{kind}.html")
    print("5 pages")


if __name__ == "__main__":
    main()
