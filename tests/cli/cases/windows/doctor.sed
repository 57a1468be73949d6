s#cannot create directory /dev/null/nowhere: Not a directory#cannot create directory Z:/dev/null/nowhere: File already exists (error 183)#
s#the driver of fake crashed its process with SIGABRT#the probe of fake exited with code 3 and without a report#
# Drivers keep their caches elsewhere, or do not say where.
s#TMP/home/.nv/ComputeCache#C:/users/USER/AppData/Roaming/NVIDIA/ComputeCache#
s#TMP/home/.cache/nvidia/GLCache#C:/users/USER/AppData/Local/NVIDIA/GLCache#
s#TMP/home/.cache/neo_compiler_cache#C:/users/USER/AppData/Local/NEO/neo_compiler_cache#
s#^ (PoCL kernels|AMD comgr) .*# \1 - - at an unknown place -#
s#^ Mesa shaders .*mesa_shader_cache# Mesa shaders - - at an unknown place -#
/"name": "(PoCL kernels|AMD comgr)"/,/"files"/ {
    s#"path": .*#"path": null,#
    s#"state": .*#"state": "at an unknown place",#
    s#"present": .*#"present": false,#
    s#"files": .*#"files": 0#
}
s#connecting: Connection refused#connecting: Couldn't connect to server#
s#KILN_SIGNING_KEY(=|: )/no/key#KILN_SIGNING_KEY\1Z:/no/key#
