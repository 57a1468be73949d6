# shellcheck shell=sh disable=SC2086
# Keys: made once, never replaced, readable by their owner alone; a remote that nobody serves.
umask 022
"$KILN" key generate a.pem >a.line
sed 's/[0-9a-f]\{64\}$/DIGITS/' a.line
stat -c %a a.pem
"$KILN" key show a.pem | cmp - a.line && echo same
t key generate a.pem
chmod 644 a.pem
t key show a.pem
echo nonsense >b.pem
chmod 600 b.pem
t key show b.pem
t key rename a.pem
t remote check
t remote check redis://host?colour=red
t remote check gopher://user:hunter2@host
t remote check gopher://user:hunter2@host --json
t remote list
