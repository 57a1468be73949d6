/* What must be next to NVRTC. FAKE_SALT makes a build of its own. */
#ifndef FAKE_SALT
#define FAKE_SALT 0
#endif
__attribute__((visibility("default"))) const int fakenvrtc_builtins = 1 + FAKE_SALT;
