#!/bin/sh
# Files of at most 600 lines; functions of at most 80 lines and complexity 15 (pmccabe). There is no
# list of exceptions.
set -eu
cd "$(dirname "$0")/.."
rc=0
files=$(git ls-files -- '*.c' '*.h' '*.hpp' '*.def' '*.py' '*.sh' '*.cl' '*.cu' '*.comp' dev | grep -v '^tests/golden/')
# shellcheck disable=SC2086
wc -l $files | awk '$2 != "total" && $1 > 600 { print $2 ": " $1 " lines, at most 600"; bad = 1 }
    END { exit bad }' || rc=1
# pmccabe reads no macros: tests that list themselves (tests/support/suite.h) become plain functions first.
copies=$(mktemp -d)
trap 'rm -rf "$copies"' EXIT
# shellcheck disable=SC2086
printf '%s\n' $files | grep '\.c$' | xargs cp --parents -t "$copies"
cd "$copies"
grep -rlE '^KT_' . | xargs sed -i -E -e 's/^KT_(TEST|TEST_IN_DIR|TEST_WITH)\((.*, )?(\w+)\)$/static void \3(void **state)/' -e 's/^KT_MAIN.*//'
# shellcheck disable=SC2046
pmccabe $(find . -name '*.c') | awk -F '\t' '
    $1 > 15 { print $6 " " $7 ": complexity " $1 ", at most 15"; bad = 1 }
    $5 > 80 { print $6 " " $7 ": " $5 " lines, at most 80"; bad = 1 }
    END { exit bad }' || rc=1
exit $rc
