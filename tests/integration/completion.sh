#!/bin/bash
# completion.sh KILN: in each shell that is here, what completion offers is what --help lists: the
# commands, every option of every command, verbs, backends; files elsewhere. KILN_REQUIRE_SHELLS=1: all must be here.
set -eu
kiln=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
mkdir a-folder && : >a-file.json
unset "${!KILN_@}"

export PATH="${kiln%/*}:$PATH" KILN_CACHE_DIR=$folder/cache

commands=$("$kiln" help | sed -n 's/^  \([a-z][a-z]*\)  .*/\1/p' | sort)
# The options of a command, long ones and letters.
options() {
    "$kiln" "$1" --help | sed -n '/^Options:/,/^Exit codes:/p' |
        sed -nE 's/^  (-.), (--[a-z-]+).*/\1\n\2/p; s/^      (--?[A-Za-z][A-Za-z0-9-]*)(=| ).*/\1/p; s/^  (-[A-Za-z]) .*/\1/p' |
        LC_ALL=C sort
}
same() { # WHAT EXPECTED GOT
    [ "$2" = "$3" ] && return
    echo "$1 differs:"
    diff <(echo "$2") <(echo "$3") || exit 1
}
has() { # WHAT WORD LIST
    grep -qx -e "$2" <<<"$3" || { echo "$1 lacks $2: $3"; exit 1; }
}

in_bash() {
    # shellcheck source=/dev/null
    source <("$kiln" completion bash)
    ask() { # WORD...: the last one is being completed
        COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
        _kiln "$1"
        printf '%s\n' "${COMPREPLY[@]}" | sort -u
    }
    same "bash: commands" "$commands" "$(ask kiln '' | grep -v '^-')"
    for command in $commands; do
        got=$(ask kiln "$command" - | sed 's/=$//' | LC_ALL=C sort)
        same "bash: kiln $command" "$(options "$command")" "$got"
    done
    has "bash: kiln run -b" opencl "$(ask kiln run -b '')"
    same "bash: kiln run --backend=" "$(ask kiln run -b '')" "$(ask kiln run --backend =)"
    same "bash: kiln run --backend=o" "$(ask kiln run -b o)" "$(ask kiln run --backend = o)"
    has "bash: kiln run -x" opencl-c "$(ask kiln run -x '')"
    has "bash: kiln run -x" hip "$(ask kiln run -x '')"
    has "bash: kiln pack" extract "$(ask kiln pack '')"
    same "bash: kiln run" "" "$(ask kiln run a)" # and so files
    complete -p kiln | grep -q -e '-o default' || exit 1
    echo "bash: fine"
}

in_zsh() {
    "$kiln" completion zsh >_kiln
    cat >ask.zsh <<'END2'
# What the completion system would get, one a line: a stand-in for its functions.
_describe() { print -l -- ${(P)4} }
_files() { }
compset() { }
compdef() { }
source ./_kiln
words=("$@") CURRENT=$#
_kiln
END2
    ask() { zsh -f ask.zsh "$@"; }
    same "zsh: commands" "$commands" "$(ask kiln '' | sed 's/:.*//' | sort)"
    for command in $commands; do
        got=$(ask kiln "$command" - | sed 's/:.*//; s/=$//' | LC_ALL=C sort -u)
        same "zsh: kiln $command" "$(options "$command")" "$got"
    done
    has "zsh: kiln pack" extract: "$(ask kiln pack '')"
    has "zsh: kiln run -b" opencl: "$(ask kiln run -b '')"
    has "zsh: kiln run --backend=" opencl: "$(ask kiln run --backend=o)"
    # And the real thing accepts every specification.
    zsh -fc 'autoload -U compinit && compinit -D -u -d ./dump && source ./_kiln && whence -w _kiln' |
        grep -q function
    echo "zsh: fine"
}

in_fish() {
    "$kiln" completion fish >kiln.fish
    ask() { # TEXT: the completions of the line
        HOME=$folder XDG_CONFIG_HOME=$folder XDG_DATA_HOME=$folder \
            fish -N -c "source kiln.fish; complete -C '$1'" | cut -f 1 | sort -u
    }
    same "fish: commands" "$commands" "$(ask 'kiln ' | grep -v '^-')"
    # One shell for all: starting one takes a while.
    for command in $commands; do
        got=$(ask "kiln $command -" | grep '^-' | sed 's/=$//' | LC_ALL=C sort)
        same "fish: kiln $command" "$(options "$command")" "$got"
    done
    has "fish: kiln run -b" opencl "$(ask 'kiln run -b ')"
    has "fish: kiln run -x" opencl-c "$(ask 'kiln run -x ')"
    has "fish: kiln run --backend=" --backend=opencl "$(ask 'kiln run --backend=o')"
    has "fish: kiln run -x" hip "$(ask 'kiln run -x ')"
    has "fish: kiln pack" extract "$(ask 'kiln pack ')"
    has "fish: kiln run" a-file.json "$(ask 'kiln run a')"
    echo "fish: fine"
}

in_bash
for shell in zsh fish; do
    if command -v $shell >/dev/null; then
        "in_$shell"
    elif [ -n "${KILN_REQUIRE_SHELLS:-}" ]; then
        echo "REQUIRED: $shell" && exit 1
    else
        echo "$shell is not here"
    fi
done
