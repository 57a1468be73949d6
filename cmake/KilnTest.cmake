# kiln_test(NAME LABEL file.c ... [LIBRARIES target ...] [TIMEOUT seconds] [FAULTFS] [ARCHIVE])
# A cmocka program linked with kiln_inside, so that internal functions are in reach (tests/support). ARCHIVE links the
# static library, for a test that replaces some of its functions. A test that
# cannot run here exits 77 with the reason on its last line; CTest counts it as skipped.
# FAULTFS preloads tests/support/faultfs.c, but not in a sanitizer build: the test then skips.
# Every test is linked with tests/support: temporary directories and the failing allocator.
if(NOT WIN32) # which makes its own
    pkg_check_modules(KILN_CMOCKA REQUIRED IMPORTED_TARGET cmocka)
endif()

# What a test of internal functions links: as an archive, and as what links sooner, in a build for this machine.
find_package(Python3 COMPONENTS Interpreter)
set(KILN_ARCHIVE kiln_static kiln_test_support)
set(KILN_INSIDE ${KILN_ARCHIVE})
if(Python3_FOUND AND NOT CMAKE_TOOLCHAIN_FILE AND NOT KILN_BACKENDS_AS_MODULES AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    set(KILN_INSIDE kiln_inside)
endif()

# kiln_emulate(NAME ...): the programs that these tests start run under QEMU, too, as they do themselves. "cc" is the
# cross compiler, which runs outside of it.
set(KILN_EMULATED "")
if(KILN_MACHINE)
    set(tools ${PROJECT_BINARY_DIR}/tools)
    file(MAKE_DIRECTORY ${tools})
    foreach(row cc:gcc gcc:gcc c++:g++ g++:g++ as:as ld:ld)
        string(REPLACE ":" ";" row ${row})
        list(GET row 0 name)
        list(GET row 1 program)
        find_program(KILN_TOOL_${program} ${CMAKE_LIBRARY_ARCHITECTURE}-${program} REQUIRED)
        file(CREATE_LINK ${KILN_TOOL_${program}} ${tools}/${name} SYMBOLIC)
    endforeach()
    list(GET CMAKE_CROSSCOMPILING_EMULATOR 0 emulator)
    set(KILN_EMULATED EMULATED_BY=${emulator} EMULATED_ROOT=${KILN_EMULATED_ROOT}
        "PATH=${tools}:$ENV{PATH}")
endif()
function(kiln_emulate)
    foreach(name ${ARGN})
        set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${KILN_EMULATED} LD_PRELOAD=$<TARGET_FILE:kiln_emulated>)
        set_property(TEST ${name} PROPERTY TIMEOUT 1500)
    endforeach()
endfunction()

function(kiln_test name label)
    cmake_parse_arguments(TEST "FAULTFS;ARCHIVE" "TIMEOUT" "LIBRARIES;DEFINITIONS;ENVIRONMENT" ${ARGN})
    if(NOT TEST_TIMEOUT)
        set(TEST_TIMEOUT 120)
    endif()
    set(library ${KILN_INSIDE})
    if(TEST_ARCHIVE)
        set(library ${KILN_ARCHIVE})
    endif()
    add_executable(${name} ${TEST_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE kiln_flags ${TEST_LIBRARIES} ${library}
        PkgConfig::KILN_CMOCKA Threads::Threads m)
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE ${TEST_DEFINITIONS})
    set(preloaded "")
    if(TEST_FAULTFS AND NOT KILN_SANITIZE)
        list(APPEND preloaded kiln_faultfs)
    endif()
    if(KILN_MACHINE) # under QEMU: so are the programs that it starts
        list(APPEND preloaded kiln_emulated)
        list(APPEND TEST_ENVIRONMENT ${KILN_EMULATED})
        math(EXPR TEST_TIMEOUT "${TEST_TIMEOUT} * 5")
    endif()
    if(preloaded)
        list(TRANSFORM preloaded REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE files)
        list(JOIN files ":" files)
        list(APPEND TEST_ENVIRONMENT LD_PRELOAD=${files})
        add_dependencies(${name} ${preloaded})
    endif()
    if(KILN_SANITIZE)
        # A driver's compiler, whose every allocation is watched, takes that much longer.
        math(EXPR TEST_TIMEOUT "3 * ${TEST_TIMEOUT}")
        # Where Mesa's drivers leak a table of an AMD processor's caches, only a whole stack names them.
        set(unwind "")
        if(name STREQUAL "test_dropin_vulkan")
            set(unwind ":fast_unwind_on_malloc=0")
        endif()
        # Their children leave in the middle, with threads running.
        set(leaks "")
        if(name MATCHES "^(test_trace|test_cuda_warm)$")
            set(leaks ":report_thread_leaks=0")
        endif()
        list(APPEND TEST_ENVIRONMENT
            LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/lsan.supp:print_suppressions=0${unwind}
            TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp:print_suppressions=0:die_after_fork=0${leaks})
    endif()
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS "${label}" SKIP_RETURN_CODE 77
        TIMEOUT ${TEST_TIMEOUT} ENVIRONMENT "${TEST_ENVIRONMENT}")
endfunction()
