/* The 5x5 convolution as a kernel of the program: the same source, another size. */
#define KSIZE 5
#include "c/conv2d.c"
