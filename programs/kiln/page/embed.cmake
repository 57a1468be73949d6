# Writes the files page.css and page.js of DIR as C strings to OUTPUT.
set(text "/* Made by embed.cmake from page.css and page.js. */\n#include \"page/page.h\"\n")
foreach(kind css js)
    file(READ ${DIR}/page.${kind} bytes HEX)
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(REGEX REPLACE "(................................................................................)" "\\1\n"
        bytes "${bytes}")
    string(APPEND text "\nconst char page_${kind}[] = {\n${bytes}0};\n")
endforeach()
file(WRITE ${OUTPUT} "${text}")
