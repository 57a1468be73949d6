"""CuPy as a scientific program uses it: ndimage, special functions, signal, jit, fuse, sorting; about 36 NVRTC
compiles."""
import cupy as cp
import cupyx
import numpy as np
from cupyx import jit
from cupyx.scipy import ndimage, signal, special

from clock import Clock

cp.cuda.runtime.free(0)
clock = Clock()
image = cp.asarray(np.random.default_rng(1).random((64, 64)), dtype=cp.float32)
for filtered in (ndimage.gaussian_filter(image, 1.5), ndimage.median_filter(image, 3), ndimage.sobel(image),
                 ndimage.zoom(image, 2, order=1), ndimage.rotate(image, 30, order=1),
                 ndimage.label((image > 0.5).astype(cp.int32))[0]):
    clock.result(cp.asnumpy(filtered))
line = cp.linspace(0.1, 0.9, 4096, dtype=cp.float32)
for function in (special.gamma, special.erf, special.j0, special.digamma, special.ndtr, special.gammaln):
    clock.result(cp.asnumpy(function(line)))
clock.result(cp.asnumpy(signal.convolve2d(image, image[:5, :5], mode="same")))
clock.result(cp.asnumpy(signal.medfilt2d(image, 3)))


@jit.rawkernel()
def scale(x, y, size):
    i = jit.grid(1)
    if i < size:
        y[i] = x[i] * 3


@cupyx.jit.rawkernel()
def shift(x, y, size):
    i = jit.grid(1)
    if i < size:
        y[i] = x[i] + 1


@cp.fuse()
def mixed(x, y):
    return cp.sqrt(x * x + y * y) - x


out = cp.empty_like(line)
for kernel in (scale, shift):
    kernel[16, 256](line, out, line.size)
    clock.result(cp.asnumpy(out))
clock.result(cp.asnumpy(mixed(line, out)))
keys = cp.asarray(np.random.default_rng(2).integers(0, 1000, 1 << 14), dtype=cp.int32)
for result in (cp.sort(keys), cp.argsort(keys, kind="stable"), cp.unique(keys), cp.cumsum(keys), keys.sum(), keys.max(),
               cp.median(line), cp.histogram(line, bins=16)[0]):
    clock.result(cp.asnumpy(result))
clock.end()
