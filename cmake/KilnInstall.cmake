# What `cmake --install` puts where: the headers, the library in both forms, what finds it (pkg-config,
# CMake), the example kernels and the documents. Programs and modules are installed by their directories.
# Nothing that is installed knows where: the tree may be moved as a whole.
set(KILN_INSTALL_KERNELSDIR "${CMAKE_INSTALL_DATADIR}/kiln/kernels" CACHE STRING
    "Where the example kernels are installed")

install(TARGETS kiln_static kiln_shared
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# --strip takes nothing out of an archive by itself.
if(CMAKE_STRIP AND NOT WIN32)
    install(CODE "if(CMAKE_INSTALL_DO_STRIP)
        execute_process(COMMAND \"${CMAKE_STRIP}\" -g
            \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/libkiln.a\")
    endif()")
endif()
if(KILN_BACKENDS STREQUAL "")
    foreach(header cache.h export.h status.h version.h cpp/cache.hpp cpp/error.hpp sys/remote.h unstable/admin.h
            unstable/binding.h unstable/pack.h unstable/remote.h unstable/cpp/pack.hpp unstable/cpp/remote.hpp)
        get_filename_component(folder ${header} DIRECTORY)
        install(FILES ${PROJECT_SOURCE_DIR}/include/kiln/${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kiln/${folder})
    endforeach()
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/LICENSE.xxhash DESTINATION ${CMAKE_INSTALL_DOCDIR})
else()
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/kiln DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/kernels/ DESTINATION ${KILN_INSTALL_KERNELSDIR}
        PATTERN "CMakeLists.txt" EXCLUDE PATTERN "kernels.[ch]" EXCLUDE PATTERN "list.h" EXCLUDE
        PATTERN "reference" EXCLUDE PATTERN "builtin" EXCLUDE PATTERN "conv2d_5x5.c" EXCLUDE)
    install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md ${PROJECT_SOURCE_DIR}/LICENSE
        ${PROJECT_SOURCE_DIR}/LICENSE.xxhash
        DESTINATION ${CMAKE_INSTALL_DOCDIR})
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
        PATTERN "man" EXCLUDE PATTERN "Doxyfile" EXCLUDE)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
        REGEX "examples/CMakeLists.txt$" EXCLUDE PATTERN "twice.sh" EXCLUDE)

    install(FILES ${PROJECT_SOURCE_DIR}/packaging/grafana/kiln.json
        DESTINATION ${CMAKE_INSTALL_DATADIR}/kiln/grafana)
    if(KILN_PROGRAMS) # off until somebody enables them
        install(FILES ${PROJECT_SOURCE_DIR}/packaging/systemd/kiln-metrics@.service
            ${PROJECT_SOURCE_DIR}/packaging/systemd/kiln-metrics@.timer DESTINATION lib/systemd/system)
    endif()
endif()

# A system's own package names its prefix; everything else counts from where kiln.pc is.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(kiln_pc_prefix /usr)
else()
    file(RELATIVE_PATH kiln_pc_up /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
    string(REGEX REPLACE "/$" "" kiln_pc_up "${kiln_pc_up}")
    set(kiln_pc_prefix "\${pcfiledir}/${kiln_pc_up}")
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/kiln.pc.in ${PROJECT_BINARY_DIR}/kiln.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kiln.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# find_package(kiln): the targets are described by hand, because what they need is linked privately.
include(CMakePackageConfigHelpers)
list(JOIN KILN_COMPONENTS " " kiln_components)
set(kiln_shared_file ${CMAKE_SHARED_LIBRARY_PREFIX}kiln${CMAKE_SHARED_LIBRARY_SUFFIX}.${PROJECT_VERSION})
set(kiln_shared_soname ${CMAKE_SHARED_LIBRARY_PREFIX}kiln${CMAKE_SHARED_LIBRARY_SUFFIX}.0)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/kilnConfig.cmake.in
    ${PROJECT_BINARY_DIR}/kilnConfig.cmake
    INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kiln
    PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR KILN_INSTALL_LIBEXECDIR
        KILN_INSTALL_KERNELSDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kilnConfig.cmake ${PROJECT_BINARY_DIR}/kilnConfigVersion.cmake
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/kiln)
