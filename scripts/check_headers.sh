#!/bin/sh
# Each public header compiles alone, as C17 and as C++17, without extensions and without a warning.
set -eu
cd "$(dirname "$0")/.."
rc=0
for header in include/kiln/*.h include/kiln/unstable/*.h include/kiln/sys/*.h; do
    name=${header#include/}
    printf '#include "%s"\n#include "%s"\ntypedef int not_empty;\n' "$name" "$name" |
        gcc -std=c17 -pedantic -Wall -Wextra -Werror -I include -fsyntax-only -x c - || rc=1
    printf '#include "%s"\n' "$name" |
        g++ -std=c++17 -pedantic -Wall -Wextra -Werror -I include -fsyntax-only -x c++ - || rc=1
done
for header in include/kiln/*.hpp include/kiln/cpp/*.hpp include/kiln/unstable/cpp/*.hpp; do
    for options in "g++ -std=c++17" "g++ -std=c++20"; do
        printf '#include "%s"\n' "${header#include/}" |
            $options -pedantic -Wall -Wextra -Werror -Wshadow -I include -fsyntax-only -x c++ - ||
            rc=1
    done
done
exit $rc
