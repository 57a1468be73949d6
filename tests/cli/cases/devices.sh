# shellcheck shell=sh disable=SC2086
"$KILN" devices --backend fake | grep -v skipped
"$KILN" devices --backend fake --json | sed '/"backends"/,/"backend": "fake"/d'
"$KILN" devices --backend fake --isolate | grep -v skipped
t devices --backend nothing
KILN_FAKE_PROBE="driver too old"
export KILN_FAKE_PROBE
t devices --backend fake
