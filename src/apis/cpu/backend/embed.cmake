# Writes INPUT as a byte array with its SHA-256 to OUTPUT.
file(READ ${INPUT} bytes HEX)
file(SHA256 ${INPUT} digest)
string(REGEX REPLACE "([0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f][0-9a-f])" "\\1\n"
    bytes "${bytes}")
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
file(WRITE ${OUTPUT} "/* Made by embed.cmake from include/kiln/cpu.h. */
#include \"apis/cpu/backend/compiler.h\"

const unsigned char kn_cpu_header[] = {
${bytes}};
const size_t kn_cpu_header_size = sizeof(kn_cpu_header);
const char kn_cpu_header_digest[] = \"${digest}\";
")
