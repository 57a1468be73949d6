#!/bin/sh
# validated.sh CONFORMANCE: runs the suite on Vulkan under the validation layer; any message of the
# layer is a failure. First it is shown that the layer is heard here: asked for its advice on good
# practice, it must have some. Skipped (77) where the layer is not installed.
set -u
layer=VK_LAYER_KHRONOS_validation
if ! grep -qs "$layer" /usr/share/vulkan/explicit_layer.d/*.json /etc/vulkan/explicit_layer.d/*.json \
    "${VK_LAYER_PATH:-/nonexistent}"/*.json; then
    echo "skipped: $layer is not installed (Debian: vulkan-validationlayers)"
    exit 77
fi
folder=$(mktemp -d) || exit 1
trap 'rm -rf "$folder"' EXIT
cat >"$folder/vk_layer_settings.txt" <<'END'
khronos_validation.debug_action = VK_DBG_LAYER_ACTION_LOG_MSG
khronos_validation.report_flags = error,warn,perf
khronos_validation.log_filename = stdout
END
export VK_LAYER_SETTINGS_PATH="$folder" VK_INSTANCE_LAYERS=$layer
spoken='VUID-|UNASSIGNED-|Validation [A-Za-z ]*(Error|Warning)'

VK_LAYER_ENABLES=VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT "$1" vulkan >"$folder/out" 2>&1
rc=$?
if [ $rc -ne 0 ]; then
    cat "$folder/out"
    exit $rc
fi
if ! grep -qE "$spoken" "$folder/out"; then
    echo "the validation layer is not heard"
    exit 1
fi

"$1" vulkan >"$folder/out" 2>&1
rc=$?
cat "$folder/out"
if grep -E "$spoken" "$folder/out" >/dev/null; then
    echo "the validation layer has something to say"
    exit 1
fi
exit $rc
