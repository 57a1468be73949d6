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
# A key with a password: nobody is asked for it, neither at a terminal nor at standard input.
cat >c.pem <<'END'
-----BEGIN ENCRYPTED PRIVATE KEY-----
MIGbMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAhbHDI61ZwM0gICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEENfaOw7X2s+e9d1ZRlpFm7sEQMKE
jy8G0Cv/u07d7JgmeQFLe9TIQ1qin/bybPTSWw1cEWHSswRg3BUz5A7CDrGIZcuM
jB1GDPiKZvn5D+Ud86Q=
-----END ENCRYPTED PRIVATE KEY-----
END
chmod 600 c.pem
echo secret | setsid -w "$KILN" key show c.pem
echo "[$?]"
