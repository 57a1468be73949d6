# shellcheck shell=sh
# Where the cache is, names that are not ASCII, both slashes, what is not there.
unset KILN_CACHE_DIR XDG_CACHE_HOME
"$KILN" doctor -b fake | grep -A 1 '^Cache'
mkdir "$HOME/Daten für kiln" sub
export XDG_CACHE_HOME="$HOME/Daten für kiln"
printf 'kernel twice x:floats\nx = x 2 *\n' >'grüße 世界.fake'
cp 'grüße 世界.fake' sub/one.fake
t compile 'grüße 世界.fake' -b fake -o 'größe.bin'
[ -s 'größe.bin' ] && echo there
[ -d "$XDG_CACHE_HOME/kiln/v1" ] && echo 'the cache is there, too'
t compile 'sub\one.fake' -b fake -o 'sub\one.bin'
[ -s sub/one.bin ] && echo there
t compile 'SUB/One.fake' -b fake
t run 'sub\one.fake' -b fake -g 4 --arg inout:f32:4=fill:3 --save '0=sub\six.bin'
t run sub/one.fake -b fake -g 4 --arg inout:f32:4=fill:3 --expect 0=sub/six.bin
# Nothing is made of patterns, quotes and backslashes at the end.
t compile '*.fake' -b fake
t compile 'a "b" \\x' -b fake
t compile nul.fake -b fake
KILN_TRACE='Z:\ünï\t.json' "$KILN" doctor -b fake | grep KILN_TRACE
t report --html page.html
[ "$(tail -c 8 page.html)" = '</html>' ] && grep -c 'This page loads nothing from elsewhere' page.html
# A path of more than 260 characters.
long=$(printf 'a%.0s' 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25)
mkdir -p "$long$long$long$long/$long$long$long$long/$long$long$long$long"
cp sub/one.fake "$long$long$long$long/$long$long$long$long/$long$long$long$long/one.fake"
"$KILN" compile "$long$long$long$long/$long$long$long$long/$long$long$long$long/one.fake" -b fake --json | grep origin
t exec -- notepad.exe
t doctor -- notepad.exe
t push oci://registry/name:tag
t pull oci://registry/name:tag
# A reader that goes away is not a finding.
"$KILN" help | head -n 1
