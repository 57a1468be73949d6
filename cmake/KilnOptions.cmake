# Options of the build, and the flags that every file of the project is compiled with.
# Another project that takes kiln in as a directory (add_subdirectory, FetchContent) gets the library and
# nothing else, unless it asks for more.
set(KILN_TOP_LEVEL OFF)
if(PROJECT_SOURCE_DIR STREQUAL CMAKE_SOURCE_DIR)
    set(KILN_TOP_LEVEL ON)
endif()
if(NOT DEFINED KILN_BACKENDS)
    set(KILN_BACKENDS all CACHE STRING "all, or empty: level 1 alone, kiln/cache.h")
endif()
if(NOT KILN_BACKENDS STREQUAL "" AND NOT KILN_BACKENDS STREQUAL "all")
    message(FATAL_ERROR "KILN_BACKENDS is \"${KILN_BACKENDS}\": give \"all\", or nothing for the cache alone")
endif()
option(KILN_PROGRAMS "Build the command, its helpers and modules" ${KILN_TOP_LEVEL})
option(KILN_INSTALL "Have rules for `cmake --install`" ${KILN_TOP_LEVEL})
option(KILN_TESTS "Build the tests (with KILN_PROGRAMS)" ${KILN_TOP_LEVEL})
option(KILN_BENCH "Build the benchmarks (with KILN_PROGRAMS)" ${KILN_TOP_LEVEL})
option(KILN_FAKE_BACKEND "Put the backend of the tests into the library; nobody else has a use for it" ${KILN_TESTS})
option(KILN_BACKENDS_AS_MODULES "Put each backend into a file of its own, loaded by name" OFF)
option(KILN_WERROR "Let a warning fail the build" ${KILN_TOP_LEVEL})
option(KILN_REPRODUCIBLE "Leave the folders of this build out of debug information as well" OFF)
# $prefix/lib/<multiarch>/kiln is another place that the library finds.
set(KILN_INSTALL_LIBEXECDIR "${CMAKE_INSTALL_LIBEXECDIR}/kiln" CACHE STRING
    "Where helper programs and modules are installed")
if(KILN_BACKENDS STREQUAL "") # of this directory: the cache's options stay as they are
    foreach(option PROGRAMS TESTS BENCH FAKE_BACKEND BACKENDS_AS_MODULES)
        set(KILN_${option} OFF)
    endforeach()
endif()
set(KILN_SANITIZE "" CACHE STRING "Sanitizers, comma-separated: address,undefined or thread")

if(KILN_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE)
    # As the preset "release" has it, and Debian's packages.
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
    set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g" CACHE STRING "" FORCE)
endif()

if(CMAKE_VERSION VERSION_LESS 3.21) # which does not know C17
    unset(CMAKE_C_STANDARD)
    add_compile_options($<$<COMPILE_LANGUAGE:C>:-std=c17>)
else()
    set(CMAKE_C_STANDARD 17)
endif()
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_LINK_DEPENDS_NO_SHARED ON) # an edit of the library links the library
set(CMAKE_UNITY_BUILD OFF) # files of one layer may define the same macro
# Relative, so that what is built does not depend on where.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)

# kiln_install(...) is install(...), where rules are wanted.
function(kiln_install)
    if(KILN_INSTALL)
        install(${ARGN})
    endif()
endfunction()

# What find_package(kiln) offers, next to `static`: today all of them are the one shared library.
set(KILN_COMPONENTS cache runtime cuda hip opencl opengl vulkan)
if(KILN_BACKENDS STREQUAL "")
    set(KILN_COMPONENTS cache)
endif()

# What is built holds no directory of this machine.
add_library(kiln_folders INTERFACE)
target_compile_options(kiln_folders INTERFACE -fmacro-prefix-map=${PROJECT_SOURCE_DIR}=.)
if(KILN_REPRODUCIBLE)
    target_compile_options(kiln_folders INTERFACE
        -ffile-prefix-map=${PROJECT_BINARY_DIR}=build -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
endif()

add_library(kiln_flags INTERFACE)
target_compile_options(kiln_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wvla -fno-strict-aliasing)
if(KILN_WERROR)
    target_compile_options(kiln_flags INTERFACE -Werror)
endif()
target_include_directories(kiln_flags INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_libraries(kiln_flags INTERFACE kiln_folders)
# Quoted includes only: <sys/file.h> must stay the system's, not src/sys/file.h.
target_compile_options(kiln_flags INTERFACE "SHELL:-iquote \"${PROJECT_SOURCE_DIR}/src\"")
if(KILN_SANITIZE)
    target_compile_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    if(KILN_SANITIZE MATCHES thread AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
        # gcc warns that it does not model fences; the one in store/memory/readers.h is next to a membarrier.
        target_compile_options(kiln_flags INTERFACE -Wno-tsan)
    endif()
    target_link_options(kiln_flags INTERFACE -fsanitize=${KILN_SANITIZE})
endif()
