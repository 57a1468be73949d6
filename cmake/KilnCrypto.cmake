# KILN_STATIC_CRYPTO: libcrypto.a and the static libraries that it needs itself (zlib and zstd with Debian 13's
# OpenSSL 3.5, none with Debian 12's), or empty where one of them is not installed. The modules with OpenSSL inside
# bring none into a program that may want another version under the same name (docs/decisions, 11).
set(KILN_STATIC_CRYPTO "")
foreach(library crypto ${KILN_CRYPTO_STATIC_LIBRARIES})
    if(library MATCHES "^(dl|pthread)$")
        continue()
    endif()
    find_library(KILN_STATIC_${library} lib${library}.a)
    if(NOT KILN_STATIC_${library})
        set(KILN_STATIC_CRYPTO "")
        break()
    endif()
    list(APPEND KILN_STATIC_CRYPTO ${KILN_STATIC_${library}})
endforeach()
list(REMOVE_DUPLICATES KILN_STATIC_CRYPTO)
if(KILN_STATIC_CRYPTO)
    list(APPEND KILN_STATIC_CRYPTO Threads::Threads ${CMAKE_DL_LIBS})
endif()
# A module that lacks a function is an error of its build, not of the program that opens it; with a sanitizer the
# program brings the functions.
set(KILN_COMPLETE "")
if(NOT KILN_SANITIZE)
    set(KILN_COMPLETE -Wl,-z,defs)
endif()
