# shellcheck shell=sh
# The data of the pages about a cache and about a fleet, and how it gets into the page. What a reader sees is tested by
# report_page.

# Wrong usage: one line, and no page.
t report
t report --html page.html metrics.prom
t report --html page.html --metrics metrics.prom --cache-dir other
t report --html page.html --json
t report --html missing/page.html
t stats --timestamps

# An empty cache: everything is 0.
t report --html page.html
t report --json | grep -vE '": 0,?$|made_ns|kiln_version|"(text|unit)"|^    },?$|": \{$'

# Everything of an entry is data, whatever it is called.
printf 'kernel f x:floats\nx = x 1 +\n' >'<img src=x onerror=alert(1)>&"q".fake'
"$KILN" compile '<img src=x onerror=alert(1)>&"q".fake' --target fake:0 -D "A=</script><script>alert(2)</script><!--" >/dev/null
"$KILN" compile '<img src=x onerror=alert(1)>&"q".fake' --target fake:0 -X -file=other >/dev/null 2>&1
t report --html page.html
grep -cF '<script' page.html
grep -cE '<img|<!--[^ ]' page.html
grep -oF 'A=\u003c/script>\u003cscript>alert(2)\u003c/script>\u003c!--' page.html
# The sample that the page has in the tree is gone, and nothing is loaded from elsewhere.
grep -cE 'var/cache/kiln"|<link|<script src' page.html
grep -vE '"kind"|http://www.w3.org/2000/svg"' page.html | grep -cE '(src|href)=|url\(|@import|https?:'
"$KILN" report --json | grep -E '"(reason|last)": '
# The costliest entry comes first: which of the two that is differs from run to run.
"$KILN" report --json | grep -E '"(name|stage)": ' | paste -d ' ' - - | sort

# Metrics: what stats prints, twice in a file with times; others' metrics between them.
"$KILN" stats --openmetrics >one.prom
"$KILN" stats --openmetrics --timestamps | grep -vcE '^#|^kiln_cache_[a-z_]+\{.*\} [0-9.]+ [0-9]{10}\.[0-9]{3}$'
cat >two.prom <<'END'
# TYPE other gauge
other{path="a \"}\" b",x="<b>"} -1.5e3 17 # {trace_id="1"} 2
kiln_cache_hits_disk_total{cache="<i>"} 10 1795000000
kiln_cache_misses_total{cache="<i>"} 10 1795000000
# EOF
kiln_cache_hits_disk_total{cache="<i>"} 40 1795003600
kiln_cache_misses_total{cache="<i>"} 20 1795003600
kiln_cache_saved_seconds_total{cache="<i>"} 1.500000000 1795003600
kiln_cache_later_version_total{cache="<i>"} 1 1795003600
# EOF
END
t report --html fleet.html --metrics one.prom two.prom
"$KILN" report --json --metrics one.prom two.prom | grep -E '"(file|labels|time_ns)"|"(hits_disk|misses|saved_ns)": [1-9]'

# Broken metrics: one line each, and the page of before stays.
cp fleet.html before.html
head -5 one.prom >cut.prom
printf 'kiln_cache_hits_disk_total{cache="a} 1\n# EOF\n' >quote.prom
printf 'kiln_cache_hits_disk_total{cache="a"} -1\n# EOF\n' >negative.prom
printf 'kiln_cache_hits_disk_total{cache="a"} 1 1e300\n# EOF\n' >time.prom
printf 'other 1\n# EOF\n' >other.prom
printf 'kiln_cache_misses_total 1\n# EOF\n\0' >nul.prom
: >empty.prom
for file in cut quote negative time other nul empty missing; do
    t report --html fleet.html --metrics one.prom $file.prom
done
cmp fleet.html before.html && echo 'the page stays'
# The path is printed on a terminal, or with KILN_LOG=info.
KILN_LOG=info "$KILN" report --html written.html 2>&1 | grep written
