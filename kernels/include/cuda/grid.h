/* Where an item is, in the words of the other languages. */
#ifndef KERNELS_CUDA_GRID_H
#define KERNELS_CUDA_GRID_H

#define GRID_ID(axis) (blockIdx.axis * blockDim.axis + threadIdx.axis)
#define GRID_SIZE(axis) (gridDim.axis * blockDim.axis)

#endif
