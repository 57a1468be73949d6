# What the Windows build takes from elsewhere. Debian has these libraries for its own systems only:
# they are built from Debian's sources, which scripts/fetch_sources.sh puts into KILN_SOURCES, under
# the names that pkg-config gives them in the other build. SHA-256 is the system's (CNG).
set(KILN_SOURCES ${PROJECT_SOURCE_DIR}/build/sources CACHE PATH "Sources of zstd, xxhash, jansson and cmocka")
if(NOT EXISTS ${KILN_SOURCES}/jansson)
    message(FATAL_ERROR "no sources in ${KILN_SOURCES}: run scripts/fetch_sources.sh ${KILN_SOURCES}")
endif()

# kiln_foreign_library(NAME directory file.c ...): other people's code, with their warnings kept to them.
function(kiln_foreign_library name directory)
    list(TRANSFORM ARGN PREPEND ${directory}/)
    add_library(kiln_${name} STATIC ${ARGN})
    target_compile_options(kiln_${name} PRIVATE -w -O2)
    target_include_directories(kiln_${name} SYSTEM PUBLIC ${directory})
    string(TOUPPER ${name} upper)
    add_library(PkgConfig::KILN_${upper} ALIAS kiln_${name})
endfunction()

set(zstd ${KILN_SOURCES}/zstd/lib)
file(GLOB zstd_files RELATIVE ${zstd} ${zstd}/common/*.c ${zstd}/compress/*.c ${zstd}/decompress/*.c
    ${zstd}/dictBuilder/*.c)
kiln_foreign_library(zstd ${zstd} ${zstd_files})
target_compile_definitions(kiln_zstd PRIVATE ZSTD_DISABLE_ASM)

kiln_foreign_library(xxhash ${KILN_SOURCES}/xxhash xxhash.c)

kiln_foreign_library(cmocka ${KILN_SOURCES}/cmocka/src cmocka.c)
target_include_directories(kiln_cmocka SYSTEM PUBLIC ${KILN_SOURCES}/cmocka/include)
target_compile_definitions(kiln_cmocka PRIVATE HAVE_STDINT_H HAVE_STRUCT_TIMESPEC HAVE_SIGNAL_H
    "CMOCKA_THREAD=__thread" HAVE_TIME_H WORDS_SIZEOF_VOID_P=8)

# jansson's own templates, filled with what its configuration would find out of mingw-w64.
function(kiln_jansson)
    foreach(name STDINT_H FCNTL_H SCHED_H UNISTD_H SYS_PARAM_H SYS_STAT_H SYS_TIME_H SYS_TYPES_H CLOSE GETPID
            GETTIMEOFDAY OPEN READ SCHED_YIELD ATOMIC_BUILTINS LOCALE_H SETLOCALE INT32_T UINT32_T UINT16_T
            UINT8_T SSIZE_T)
        set(HAVE_${name} 1)
    endforeach()
    set(USE_WINDOWS_CRYPTOAPI 1)
    set(JSON_INLINE inline)
    set(JSON_INT_T "long long")
    set(JSON_STRTOINT strtoll)
    set(JSON_INTEGER_FORMAT "\"lld\"")
    set(JSON_HAVE_LOCALECONV 1)
    set(JSON_HAVE_ATOMIC_BUILTINS 1)
    set(JSON_HAVE_SYNC_BUILTINS 1)
    set(JANSSON_INITIAL_HASHTABLE_ORDER 3)
    set(made ${PROJECT_BINARY_DIR}/jansson)
    foreach(name jansson_config jansson_private_config)
        configure_file(${KILN_SOURCES}/jansson/cmake/${name}.h.cmake ${made}/${name}.h)
    endforeach()
    set(directory ${KILN_SOURCES}/jansson/src)
    file(GLOB files RELATIVE ${directory} ${directory}/*.c)
    kiln_foreign_library(jansson ${directory} ${files})
    target_include_directories(kiln_jansson SYSTEM PUBLIC ${made})
    target_compile_definitions(kiln_jansson PRIVATE HAVE_CONFIG_H)
    target_link_libraries(kiln_jansson PUBLIC advapi32)
endfunction()
kiln_jansson()

# The headers of the APIs say nothing of the system. They lie among those of this machine's own
# libraries, which must not be seen: links to their directories alone.
set(KILN_API_HEADERS ${PROJECT_BINARY_DIR}/headers)
file(MAKE_DIRECTORY ${KILN_API_HEADERS})
foreach(folder CL EGL GL KHR vulkan vk_video)
    if(EXISTS /usr/include/${folder})
        file(CREATE_LINK /usr/include/${folder} ${KILN_API_HEADERS}/${folder} SYMBOLIC)
    endif()
endforeach()
foreach(name OPENCL EGL GL)
    set(KILN_${name}_HEADERS ${KILN_API_HEADERS} CACHE PATH "Khronos' headers" FORCE)
endforeach()

include_directories(SYSTEM ${KILN_API_HEADERS})

# What mingw-w64's C library lacks of C17.
include_directories(SYSTEM ${PROJECT_SOURCE_DIR}/src/sys/windows/libc)
add_compile_definitions(_WIN32_WINNT=0x0A00 WIN32_LEAN_AND_MEAN NOMINMAX UNICODE __USE_MINGW_ANSI_STDIO=1)
# isnan() and isfinite() of mingw-w64's <math.h> choose by size, and convert where they do not look.
add_compile_options(-Wno-float-conversion)
