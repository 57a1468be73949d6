// first_result_occa SOURCE: one sample of bench/compare.py through OCCA's OpenCL mode, from a ready device to
// the first result on the host: "build first" in microseconds. Caches lie where the environment says.
#include <occa.hpp>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <vector>

int main(int argc, char **argv)
{
    constexpr int size = 64, group = 8;
    if (argc != 2) {
        return 2;
    }
    std::ifstream file(argv[1]);
    std::stringstream text;
    text << file.rdbuf();
    const auto now = [] {
        return std::chrono::duration<double, std::micro>(
                   std::chrono::steady_clock::now().time_since_epoch())
            .count();
    };
    occa::json where;
    where["mode"] = "OpenCL";
    where["platform_id"] = 0;
    where["device_id"] = 0;
    occa::device device(where);
    device.finish();
    const std::vector<float> a(size * size, 1.0F);
    std::vector<float> c(size * size);

    const double start = now();
    occa::json options;
    options["okl/enabled"] = false; // the kernel is OpenCL C as it is
    occa::kernel kernel = device.buildKernelFromString(text.str(), "matmul", options);
    const double built = now();
    occa::memory x = device.malloc<float>(a.size(), a.data());
    occa::memory y = device.malloc<float>(a.size(), a.data());
    occa::memory z = device.malloc<float>(c.size());
    kernel.setRunDims(occa::dim(size / group, size / group), occa::dim(group, group));
    kernel(x, y, z, size);
    z.copyTo(c.data());
    const double took = now() - start;
    if (c[0] != static_cast<float>(size)) {
        std::fprintf(stderr, "wrong result\n");
        return 1;
    }
    std::printf("%.3f %.3f\n", built - start, took);
    return 0;
}
