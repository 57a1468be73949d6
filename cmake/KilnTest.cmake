# kiln_test(NAME LABEL file.c ... [LIBRARIES target ...] [TIMEOUT seconds])
# A cmocka program linked with the static library, so that internal functions are in reach. A test that
# cannot run here exits 77 with the reason on its last line; CTest counts it as skipped.
pkg_check_modules(CMOCKA REQUIRED IMPORTED_TARGET cmocka)

function(kiln_test name label)
    cmake_parse_arguments(TEST "" "TIMEOUT" "LIBRARIES;DEFINITIONS;ENVIRONMENT" ${ARGN})
    if(NOT TEST_TIMEOUT)
        set(TEST_TIMEOUT 120)
    endif()
    add_executable(${name} ${TEST_UNPARSED_ARGUMENTS})
    target_link_libraries(${name} PRIVATE kiln_flags kiln_static PkgConfig::CMOCKA Threads::Threads
        ${TEST_LIBRARIES})
    target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    target_compile_definitions(${name} PRIVATE _GNU_SOURCE ${TEST_DEFINITIONS})
    add_test(NAME ${name} COMMAND ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${label} SKIP_RETURN_CODE 77
        TIMEOUT ${TEST_TIMEOUT} ENVIRONMENT "${TEST_ENVIRONMENT}")
endfunction()
