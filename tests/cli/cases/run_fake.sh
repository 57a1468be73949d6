# shellcheck shell=sh disable=SC2086
cat >saxpy.fake <<'END'
kernel saxpy a:float x:floats y:floats
y = a x * y +
kernel copy x:floats y:floats
y = x
END
cat >one.fake <<'END'
kernel scale x:floats
x = x FACTOR *
END
saxpy="run saxpy.fake --backend fake --entry saxpy --global 16 --local 4"
# From generated values to a file, from the file back, and what should come out.
t $saxpy --arg value:f32=2 --arg in:f32:16=random:0:1 --arg inout:f32:16=fill:1 --save 2=y.bin
t run saxpy.fake --backend fake --entry copy --global 16 --arg in:f32:16=file:y.bin --arg out:f32:16 \
    --expect 1=y.bin --json
t run saxpy.fake --backend fake --entry copy --global 4x4 --arg in:f32:4x4=fill:3 --arg out:f32:4x4 \
    --expect 1=y.bin
t $saxpy --arg value:f32=2 --arg in:f32:16=random:-1:1:5 --arg inout:f32:16=file:y.bin --save 2=a.bin --repeat 0
t $saxpy --arg value:f32=2 --arg in:f32:16=random:-1:1:5 --arg inout:f32:16=file:y.bin --expect 2=a.bin
# The only entry need not be named; definitions reach the compiler and the key.
t run one.fake -b fake -g 2 --arg inout:f32:2=fill:2 -D FACTOR=3 --save 0=six.bin
t run one.fake -b fake -g 2 --arg inout:f32:2=fill:2 -DFACTOR=3 --expect 0=six.bin
t run one.fake -b fake -g 2 --arg inout:f32:2=fill:2 -DFACTOR=4 --expect 0=six.bin
t run one.fake -b fake -g 2 --arg inout:f32:2=fill:2 -DFACTOR=4 --expect 0=six.bin --no-check
t run one.fake -b fake -d fake:1 -g 2 --arg inout:f32:2=fill:2 -DFACTOR=3 --expect 0=six.bin
t run one.fake -b fake --all-devices -g 2 --arg inout:f32:2=fill:2 -DFACTOR=3 --expect 0=six.bin
# What goes wrong is reported in one line, with the exit code that is documented.
t run saxpy.fake -b fake -g 16 --arg in:f32:16 --arg out:f32:16
t run saxpy.fake -b fake -g 16 -e nothing --arg in:f32:16
t $saxpy --arg value:f32=2 --arg in:f32:16
t $saxpy --arg value:i32=2 --arg in:f32:16 --arg inout:f32:16
t $saxpy --arg in:f32:16 --arg in:f32:16 --arg inout:f32:16
t $saxpy --arg value:f32=2 --arg in:f64:16 --arg inout:f32:16
t $saxpy --arg value:f32=2 --arg in:f32:16=file:none.bin --arg inout:f32:16
t $saxpy --arg value:f32=2 --arg in=saxpy.fake --arg inout:f32:16
t $saxpy --arg value:f32=2 --arg in:f32:32=file:y.bin --arg inout:f32:16
t $saxpy --arg value:f32=2 --arg in:f32:8=file:y.bin --arg inout:f32:16
t $saxpy --arg value:f32=x --arg in:f32:16 --arg inout:f32:16
t $saxpy --arg value:f32=2 --arg in:f32:16=random:1 --arg inout:f32:16
t $saxpy --arg value:f32=2 --arg in:f32:16 --arg inout:f32:16 --save 1=x.bin
t $saxpy --arg value:f32=2 --arg in:f32:16 --arg inout:f32:16 --save 2=/nowhere/x.bin
t $saxpy --arg value:f32=2 --arg in:f32:16 --arg inout:f32:16 --local 5
t run saxpy.fake -b fake -g 0 -e saxpy
t run saxpy.fake -b fake -e saxpy
# With what is in the cache, and without compiling.
one="run one.fake --backend fake -DFACTOR=7 --global 16 --arg inout:f32:16"
t $one --cache-only
"$KILN" $one >/dev/null
t $one --cache-only
