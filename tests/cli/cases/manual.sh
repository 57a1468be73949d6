# shellcheck shell=sh disable=SC2086
# The manual knows every command, every option and every exit code that --help shows, word for word.
manual=$SOURCE_DIR/docs/man
for command in $("$KILN" help | sed -n 's/^  \([a-z]*\)  .*/\1/p'); do
    grep -q "^\.It Ic $command" "$manual/kiln.1" || echo "kiln.1 lacks $command"
    page=$manual/kiln.1
    [ $command = run ] && page="$manual/kiln.1 $manual/kiln-run.1"
    "$KILN" $command --help | sed -n 's/^  .*--\([a-z-]*\).*  .*/\1/p' | while read -r option; do
        # shellcheck disable=SC2086
        grep -Eq -- "Fl (. , )?-$option( |$)|, -$option( |$)|; Fl .* -$option( |$)" $page ||
            echo "the manual lacks $command --$option"
    done
done
"$KILN" help | sed -n 's/^  \([0-6]\)  /.It \1\n/p' >"$HOME/codes"
sed -n '/^\.Sh EXIT STATUS/,/^\.El/p' "$manual/kiln.1" | sed '1,2d;$d' | diff "$HOME/codes" - &&
    echo "exit codes agree"
