/* What must be next to NVRTC. */
__attribute__((visibility("default"))) const int fakenvrtc_builtins = 1;
