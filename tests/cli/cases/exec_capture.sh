# shellcheck shell=sh disable=SC2086,SC2016
# K13: what PoCL compiled and kiln could not read cheaply is counted. One of three was stored after all.
"$KILN" exec --stats -- sh -c 'for i in 1 2 3; do printf "opencl\tcompiled\t1000\t0\tp\t\nopencl\tleft\t1000\t0\tp\t\n"; done >>"$KILN_EXEC_REPORT"
    printf "opencl\tstored\t1000\t0\tp\t\n" >>"$KILN_EXEC_REPORT"' 2>&1 | grep "not stored"
"$KILN" exec --stats -- sh -c 'printf "opencl\tleft\t1\t0\tp\t\nopencl\tstored\t1\t0\tp\t\n" >>"$KILN_EXEC_REPORT"' 2>&1 | grep -c "not stored"
"$KILN" exec -- sh -c 'echo "KILN_CAPTURE=${KILN_CAPTURE-unset}"'
"$KILN" exec --capture -- sh -c 'echo "KILN_CAPTURE=${KILN_CAPTURE-unset}"'
