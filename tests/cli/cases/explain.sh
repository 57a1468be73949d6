# shellcheck shell=sh disable=SC2086
# Each input of a compile, changed alone, is named.
mkdir include
printf '#define N 1\n' >include/h.fake
printf '#include "h.fake"\nkernel one x:floats\nx = x 1 +\n' >one.fake
options="one.fake -t fake:0 -I include"
t explain $options
t compile $options
t explain $options
printf '#define N 2\n' >include/h.fake
t explain $options
printf '#define N 1\n' >include/h.fake
t explain $options -DM=1
t explain $options -X -fast
t explain $options -DM=1 --json
printf '\n' >>one.fake
t explain $options
printf '#include "h.fake"\nkernel one x:floats\nx = x 1 +\n' >one.fake
key=$("$KILN" ls --target fake-0 --full | sed -n '2s/ .*//p')
t explain "$(printf %.12s "$key")"
t prune --max-size 0
t explain "$key"
t explain $options
t explain 0000000000000000000000000000000000000000000000000000000000000000
t explain absent.fake
t explain
# Of a program that calls a drop-in; the fake backend has none.
t explain --drop-in $options
# A backend without a device, as kiln compile takes it.
KILN_FAKE_DEVICES=0 t compile one.fake -b fake -I include
KILN_FAKE_DEVICES=0 t explain one.fake -b fake -I include
