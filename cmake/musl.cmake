# For musl on this machine's own processor, by Debian's musl-gcc and the libraries that scripts/build_musl.sh
# built. Programs run here as they are: musl's loader is installed.
set(CMAKE_C_COMPILER musl-gcc)
get_filename_component(root ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot/musl ABSOLUTE)
set(CMAKE_C_FLAGS_INIT "-isystem ${root}/include") # the kernel's headers, and Khronos'
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} ${root}/lib/pkgconfig)
