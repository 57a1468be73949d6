# For another architecture of Debian's, by its cross compiler and what scripts/fetch_sysroot.sh unpacked;
# programs run under QEMU. KILN_MACHINE says which: arm64 or s390x.
set(machine_arm64 aarch64)
set(machine_s390x s390x) # big-endian
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES KILN_MACHINE)
set(machine ${machine_${KILN_MACHINE}})
if(NOT machine)
    message(FATAL_ERROR "KILN_MACHINE is \"${KILN_MACHINE}\": set it to arm64 or s390x")
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${machine})
set(CMAKE_LIBRARY_ARCHITECTURE ${machine}-linux-gnu)
set(CMAKE_C_COMPILER ${machine}-linux-gnu-gcc)
get_filename_component(CMAKE_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build/sysroot/${KILN_MACHINE} ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_SYSROOT}/usr/lib/${machine}-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
set(KILN_EMULATED_ROOT ${CMAKE_SYSROOT}.run)
set(CMAKE_CROSSCOMPILING_EMULATOR /usr/bin/qemu-${machine}-static -L ${KILN_EMULATED_ROOT})
