# shellcheck shell=sh disable=SC2086
cat >k.fake <<'END'
kernel twice x:floats y:floats
y = x 2 *
END
write() {
    cat >"$1" <<END
{"kiln_manifest": 1, "kernels": [
  {"name": "twice", "sources": {"fake": "k.fake"},
   "args": [{"name": "x", "kind": "in", "type": "f32", "shape": [4], "init": {"random": [0, 1]}},
            {"name": "y", "kind": "out", "type": "f32", "shape": [4]}],
   "launch": {"global": [4]}},
  {"name": "other", "sources": {"$2": "k.fake"}, "entry": "twice", "defines": {"N": "1"},
   "args": [{"name": "x", "kind": "in", "type": "f32", "shape": [4]},
            {"name": "y", "kind": "out", "type": "f32", "shape": [4]}],
   "launch": {"global": [4], "local": [2]}}]}
END
}
write m.json fake
t run m.json -b fake
t run m.json -b fake --kernel twice --json
t run m.json -b fake --kernel none
t run m.json -b fake --all-devices
write c.json cuda
t run c.json -b fake --kernel other
t run c.json -b fake --kernel other --all-devices
write l.json english
t run l.json -b fake
t run m.json -b fake --global 4
sed 's/"in"/"inn"/' m.json >bad.json
t run bad.json -b fake
sed 's/"global": \[4\]/"globl": [4]/' m.json >bad.json
t run bad.json -b fake
head -3 m.json >cut.json
t run cut.json -b fake
echo '[]' >list.json
t run list.json -b fake
t run none.json -b fake
: >empty.json
t run empty.json
sed 's/k\.fake/none.fake/' m.json >lost.json
t run lost.json -b fake
