#!/usr/bin/env python3
"""report_page.py KILN [DIRECTORY]: the pages of `kiln report` in headless Chromium, at two widths: they load nothing, run
nothing that an entry's name holds, are no wider than the window, sort a table at a click, and read without JavaScript.
With DIRECTORY, the screenshots stay there."""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HOSTILE = "<img src=x onerror=document.title='run'>"
# Clicks on a heading and notes what the page then is; the answer is read from the dumped document.
PROBE = """
<script>
addEventListener("load", () => {
  const table = [...document.querySelectorAll("table")].find(t => t.textContent.includes("KEEP"));
  const column = [...table.tHead.rows[0].cells].findIndex(c => c.textContent === "size");
  const sizes = () => [...table.tBodies[0].rows].map(r => Number(r.cells[column].dataset.v));
  const ordered = (a, sign) => a.every((v, i) => i === 0 || sign * (a[i - 1] - v) >= 0);
  const button = table.tHead.rows[0].cells[column].querySelector("button");
  button.click();
  const down = ordered(sizes(), 1);
  button.click();
  const up = ordered(sizes(), -1);
  document.body.dataset.probe = [table.tBodies[0].rows.length, down, up, document.documentElement.scrollWidth <= innerWidth,
    document.images.length, document.title, performance.getEntriesByType("resource").length].join("|");
});
</script>
"""


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


def main():
    kiln = os.path.abspath(sys.argv[1])
    name = browser()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        keep = Path(sys.argv[2]).resolve() if len(sys.argv) > 2 else folder
        make_pages(kiln, folder)
        page = (folder / "cache.html").read_text(encoding="utf-8")
        # The page's own policy forbids nothing that the probe needs: both are inline.
        (folder / "probe.html").write_text(page.replace("</body>", PROBE + "</body>"), encoding="utf-8")
        for width in (1280, 500): # Chromium's window has 500 columns at least
            dumped = chromium(name, folder / "home", f"--window-size={width},1000", "--dump-dom",
                              f"file://{folder}/probe.html")
            told = re.search(r'data-probe="([^"]*)"', dumped)
            assert told, "the page's script does not run"
            rows, *rest = told[1].split("|")
            assert int(rows) >= 12, rows
            assert rest == ["true", "true", "true", "0", "What this kiln cache holds", "0"], rest
        plain = re.sub(r"<script>.*?</script>", "", page, flags=re.S)
        assert "KEEP" in plain and "What is stale" in plain and "<button" not in plain
        recorded = (folder / "recording.html").read_text(encoding="utf-8")
        assert "Programs, by the days" in recorded and recorded.count(">in this cache</td>") == 6, recorded
        assert "<img" not in recorded
        for kind in ("cache", "fleet", "recording"):
            for width in (1280, 400):
                picture = keep / f"{kind}-{width}.png"
                chromium(name, folder / "home", f"--window-size={width},2400", f"--screenshot={picture}",
                         f"file://{folder}/{kind}.html")
                assert picture.stat().st_size > 20000, picture
    print("3 pages")


if __name__ == "__main__":
    main()
