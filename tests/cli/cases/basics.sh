# shellcheck shell=sh disable=SC2086
t version
t version --json
t --version
t help
t
t frobnicate
t device
t run
t run --help extra
t version extra
t ls --jsn
t ls --limit x
t prune --max-age 3
t prune
t help nothing
for command in devices doctor run compile stats ls show verify prune clear version help; do
    "$KILN" "$command" --help >"$HOME/out" 2>"$HOME/err" || echo "$command --help fails"
    [ -s "$HOME/err" ] && echo "$command --help complains"
    head -1 "$HOME/out"
    grep -c '^  [0-6]  ' "$HOME/out"
done
# Output that cannot be written is not a success.
if [ -w /dev/full ]; then
    "$KILN" help >/dev/full
    echo "[$?]"
fi
