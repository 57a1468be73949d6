/* (b) Half precision, tensor cores and cooperative groups: a 16 x 16 product. One block of 32. */
#include <cuda_fp16.h>
#include <mma.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

extern "C" __global__ void run(const float *in, float *out)
{
    using namespace nvcuda;
    __shared__ __half a[256];
    for (int i = threadIdx.x; i < 256; i += 32) {
        a[i] = __float2half(in[i]);
    }
    cg::this_thread_block().sync();
    wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> fb;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> fc;
    wmma::fill_fragment(fc, 0.0f);
    wmma::load_matrix_sync(fa, a, 16);
    wmma::load_matrix_sync(fb, a, 16);
    wmma::mma_sync(fc, fa, fb, fc);
    wmma::store_matrix_sync(out, fc, 16, wmma::mem_row_major);
}
