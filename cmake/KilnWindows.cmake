# What the Windows build takes from elsewhere. Debian has these libraries for its own systems only:
# they are built from Debian's sources, which scripts/fetch_sources.sh puts into KILN_SOURCES, under
# the names that pkg-config gives them in the other build. SHA-256 is the system's (CNG).
set(KILN_SOURCES ${PROJECT_SOURCE_DIR}/build/sources CACHE PATH "Sources of zstd, xxhash and cmocka")
if(NOT EXISTS ${KILN_SOURCES}/zstd)
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
