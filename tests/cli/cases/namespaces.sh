# shellcheck shell=sh
# A namespace is a part of the cache with entries and limits of its own.
printf 'kernel saxpy a:float x:floats y:floats\ny = a x * y +\n' >saxpy.fake
compile="$KILN compile saxpy.fake -t fake:0"
$compile >/dev/null
t cache namespaces
$compile --namespace ci | tail -1
KILN_NAMESPACE=ci $compile | tail -1
KILN_NAMESPACE=ci $compile --namespace dev | tail -1
KILN_NAMESPACE=ci $compile --namespace '' | tail -1
t cache namespaces
t cache namespaces --json
KILN_NAMESPACE=ci "$KILN" cache dir
KILN_NAMESPACE=ci "$KILN" config namespace
"$KILN" ls --namespace ci | sort
t stats --namespace dev
t prune --namespace ci --max-age 0s
t clear --namespace dev
t cache namespaces
t ls --namespace a/b
KILN_NAMESPACE=.x "$KILN" doctor -b fake 2>&1 | sed -n "/^Problems/,\$p"
t cache everything
printf 'namespace = team\n' >kiln.conf
KILN_CONFIG=$PWD/kiln.conf "$KILN" cache dir
