# What the Windows build takes from elsewhere. Debian has these libraries for its own systems only:
# they are built from Debian's sources, which scripts/fetch_sources.sh puts into KILN_SOURCES, under
# the names that pkg-config gives them in the other build. SHA-256 is the system's (CNG).
set(KILN_SOURCES ${PROJECT_SOURCE_DIR}/build/sources CACHE PATH "Sources of the libraries")
if(NOT EXISTS ${KILN_SOURCES}/curl) # the last one that is fetched
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

# kiln_windows_module(TARGET): a DLL next to libkiln.dll that needs nothing but DLLs of Windows itself, and
# exports what is marked alone.
function(kiln_windows_module target)
    target_compile_definitions(${target} PRIVATE KILN_BUILDING KILN_SHARED)
    target_link_options(${target} PRIVATE -static -Wl,--gc-sections)
    set_target_properties(${target} PROPERTIES PREFIX lib)
    kiln_libexec(${target})
endfunction()

set(zstd ${KILN_SOURCES}/zstd/lib)
file(GLOB zstd_files RELATIVE ${zstd} ${zstd}/common/*.c ${zstd}/compress/*.c ${zstd}/decompress/*.c
    ${zstd}/dictBuilder/*.c)
kiln_foreign_library(zstd ${zstd} ${zstd_files})
target_compile_definitions(kiln_zstd PRIVATE ZSTD_DISABLE_ASM)

set(KILN_XXHASH_INCLUDE_DIRS ${KILN_SOURCES}/xxhash)

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

# Ed25519, of the module that signs alone: portable C, of which the linker takes what is called.
function(kiln_libsodium)
    set(directory ${KILN_SOURCES}/libsodium/src/libsodium)
    file(GLOB_RECURSE files RELATIVE ${directory} ${directory}/*.c)
    kiln_foreign_library(sodium ${directory} ${files})
    file(STRINGS ${KILN_SOURCES}/libsodium/configure.ac lines REGEX "^(AC_INIT|SODIUM_LIBRARY_VERSION_M)")
    string(REGEX MATCH "AC_INIT\\(\\[libsodium\\],\\[([0-9.]+)\\]" found "${lines}")
    set(VERSION ${CMAKE_MATCH_1})
    foreach(part MAJOR MINOR)
        string(REGEX MATCH "SODIUM_LIBRARY_VERSION_${part}=([0-9]+)" found "${lines}")
        set(SODIUM_LIBRARY_VERSION_${part} ${CMAKE_MATCH_1})
    endforeach()
    set(made ${PROJECT_BINARY_DIR}/libsodium)
    configure_file(${directory}/include/sodium/version.h.in ${made}/sodium/version.h @ONLY)
    configure_file(${directory}/include/sodium/export.h ${made}/sodium/export.h COPYONLY) # which that includes
    target_include_directories(kiln_sodium SYSTEM PUBLIC ${directory}/include ${made})
    target_include_directories(kiln_sodium PRIVATE ${directory}/include/sodium ${made}/sodium)
    target_compile_definitions(kiln_sodium PUBLIC SODIUM_STATIC
        PRIVATE CONFIGURED NATIVE_LITTLE_ENDIAN HAVE_TI_MODE)
    target_compile_options(kiln_sodium PRIVATE -ffunction-sections -fdata-sections)
endfunction()
kiln_libsodium()

# HTTP and TLS, of the remotes' modules: libcurl with Windows' own TLS, without what kiln does not ask for.
# Its own header for Windows stands in for a configuration.
function(kiln_libcurl)
    set(directory ${KILN_SOURCES}/curl/lib)
    file(GLOB files RELATIVE ${directory} ${directory}/*.c ${directory}/vauth/*.c ${directory}/vquic/*.c
        ${directory}/vtls/*.c)
    kiln_foreign_library(curl ${directory} ${files})
    target_include_directories(kiln_curl SYSTEM PUBLIC ${KILN_SOURCES}/curl/include)
    target_compile_definitions(kiln_curl PUBLIC CURL_STATICLIB PRIVATE BUILDING_LIBCURL _UNICODE HTTP_ONLY
        USE_SCHANNEL USE_WINDOWS_SSPI CURL_DISABLE_COOKIES CURL_DISABLE_DOH CURL_DISABLE_ALTSVC CURL_DISABLE_HSTS
        CURL_DISABLE_FORM_API CURL_DISABLE_MIME CURL_DISABLE_NTLM CURL_DISABLE_GETOPTIONS)
    target_compile_options(kiln_curl PRIVATE -ffunction-sections -fdata-sections)
    target_link_libraries(kiln_curl PUBLIC ws2_32 crypt32 bcrypt advapi32)
endfunction()
kiln_libcurl()

# Redis' framing alone: what hiredis has of sockets is not built.
kiln_foreign_library(hiredis ${KILN_SOURCES}/hiredis alloc.c hiredis.c read.c sds.c)
target_include_directories(kiln_hiredis SYSTEM PUBLIC ${KILN_SOURCES})
target_compile_options(kiln_hiredis PRIVATE -ffunction-sections -fdata-sections)

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
