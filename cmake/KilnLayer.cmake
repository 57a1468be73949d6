# kiln_layer(NAME file.c ... [LIBRARIES target ...] [DEFINITIONS name ...])
# One layer of the library: an object library kn_NAME whose objects become part of libkiln. Which layers
# may include which is checked by scripts/check_layers.py, not here.
set_property(GLOBAL PROPERTY KILN_LAYERS "")

function(kiln_layer name)
    cmake_parse_arguments(LAYER "" "" "LIBRARIES;DEFINITIONS" ${ARGN})
    add_library(kn_${name} OBJECT ${LAYER_UNPARSED_ARGUMENTS})
    target_link_libraries(kn_${name} PRIVATE kiln_flags ${LAYER_LIBRARIES})
    target_compile_definitions(kn_${name} PRIVATE KILN_BUILDING ${LAYER_DEFINITIONS})
    if(NOT WIN32) # whose own headers use what is banned; the files that both builds share are checked in the other
        target_compile_options(kn_${name} PRIVATE -include ${PROJECT_SOURCE_DIR}/src/base/banned.h)
    endif()
    # What backends use must be in reach when they are modules.
    if(KILN_BACKENDS_AS_MODULES AND name MATCHES "^(base|sys|hal|gpu|compilers|options_.*)$")
        set_target_properties(kn_${name} PROPERTIES C_VISIBILITY_PRESET default)
        target_compile_options(kn_${name} PRIVATE -fno-semantic-interposition)
    endif()
    set_property(GLOBAL APPEND PROPERTY KILN_LAYERS kn_${name})
    set_property(GLOBAL APPEND PROPERTY KILN_LAYER_LIBRARIES ${LAYER_LIBRARIES})
endfunction()

# kiln_libexec(TARGET): a helper program or a module of kiln's own. Built into one directory, so that all
# are found together, and installed next to each other; kn_paths_helper() has the places.
# The target kiln_libexec builds all of them.
add_custom_target(kiln_libexec)
function(kiln_libexec target)
    set(folder ${PROJECT_BINARY_DIR}/programs/libexec/kiln)
    if(WIN32) # next to the library, which has no other place
        set(folder ${PROJECT_BINARY_DIR}/bin)
    endif()
    set_target_properties(${target} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${folder} LIBRARY_OUTPUT_DIRECTORY ${folder})
    kiln_install(TARGETS ${target} RUNTIME DESTINATION ${KILN_INSTALL_LIBEXECDIR}
        LIBRARY DESTINATION ${KILN_INSTALL_LIBEXECDIR})
    add_dependencies(kiln_libexec ${target})
endfunction()
