#!/bin/sh
# glslc.sh ARGUMENTS...: stands for glslc in a build and writes down what it is called with, a line of arguments that
# tabs separate, in the file that FOREIGN_SHADERS names, for bench/foreign/shaders.py. Then glslc does its work.
line=
skip=no
for argument in "$@"; do
    case $skip$argument in
    no-o | no-MF) skip=yes ;; # an output of the build's own
    no-MD) ;;
    no*) line="$line${line:+	}$argument" ;;
    *) skip=no ;;
    esac
done
printf '%s\n' "$line" >>"${FOREIGN_SHADERS:?names the file of jobs}"
exec glslc "$@"
