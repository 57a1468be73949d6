# kiln_layer(NAME file.c ... [LIBRARIES target ...] [DEFINITIONS name ...])
# One layer of the library: an object library kn_NAME whose objects become part of libkiln. Which layers
# may include which is checked by scripts/check_layers.py, not here.
set_property(GLOBAL PROPERTY KILN_LAYERS "")

function(kiln_layer name)
    cmake_parse_arguments(LAYER "" "" "LIBRARIES;DEFINITIONS" ${ARGN})
    add_library(kn_${name} OBJECT ${LAYER_UNPARSED_ARGUMENTS})
    target_link_libraries(kn_${name} PRIVATE kiln_flags ${LAYER_LIBRARIES})
    target_compile_definitions(kn_${name} PRIVATE KILN_BUILDING ${LAYER_DEFINITIONS})
    target_compile_options(kn_${name} PRIVATE -include ${PROJECT_SOURCE_DIR}/src/base/banned.h)
    set_property(GLOBAL APPEND PROPERTY KILN_LAYERS kn_${name})
    set_property(GLOBAL APPEND PROPERTY KILN_LAYER_LIBRARIES ${LAYER_LIBRARIES})
endfunction()
