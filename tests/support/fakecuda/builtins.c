/* What must lie beside NVRTC. */
__attribute__((visibility("default"))) const int fakenvrtc_builtins = 1;
