# shellcheck shell=sh
# The page about a cache and the page about a fleet. Their text without markup is what a reader sees; the looks are
# tested by report_page.
words() { sed -e '/<style>/,/<\/style>/d' -e '/<script>/,/<\/script>/d' -e 's/<[^>]*>/ /g' -e 's/  */ /g' -e 's/^ //' "$1" | grep -v '^$'; }

# Wrong usage: one line, and no page.
t report
t report --html page.html metrics.prom
t report --html page.html --metrics metrics.prom --unreachable
t report --html missing/page.html
t stats --timestamps

# An empty cache.
t report --html page.html
words page.html | grep -E 'nothing yet|^Nothing (has|did)|There (are|were)'

# Everything of an entry is text, whatever it is called.
printf 'kernel f x:floats\nx = x 1 +\n' >'<img src=x onerror=alert(1)>&"q".fake'
"$KILN" compile '<img src=x onerror=alert(1)>&"q".fake' --target fake:0 -D "A=<script>alert(2)</script>'" >/dev/null
"$KILN" compile '<img src=x onerror=alert(1)>&"q".fake' --target fake:0 -X -file=other >/dev/null 2>&1
t report --html page.html
grep -c '<script' page.html
grep -c '<img' page.html
grep -o 'A=&lt;script&gt;alert(2)&lt;/script&gt;&#39;' page.html
grep -o '&lt;img src=x onerror=alert(1)&gt;&amp;&quot;q&quot;.fake' page.html | head -1
# Nothing is loaded from elsewhere.
sed 's/&lt;img.*fake//' page.html | grep -cE '(src|href)=|url\(|@import|https?:'
grep '<h2>' page.html
words page.html | grep -E '^(fake.code|.*of entries never seen|.* bypassed)'
KILN_BACKEND=fake "$KILN" report --html page.html --unreachable && words page.html | grep -c 'by what the drivers'

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
words fleet.html | grep -E '^(one|two)\.prom|caches|2026-11-18'
grep -o 'points="[^"]*"' fleet.html
t report --html fleet.html -m one.prom
words fleet.html | grep -o 'Not in these files:'

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
