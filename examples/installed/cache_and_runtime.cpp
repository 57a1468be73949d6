/* Both levels in C++: errors are exceptions, objects end by themselves. */
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <kiln/kiln.hpp>

static void use_cache()
{
    const std::string text = "return x * 2;";
    kiln::cache cache;
    kiln::recipe recipe("example.reverse", 1);
    recipe.add("source", text).add("compiler", "reverse 1.0").add("level", 3);
    kiln_origin origin{};
    const kiln::blob code = cache.get_or_compile(
        recipe, [&] { return kiln::blob(std::string(text.rbegin(), text.rend())); }, &origin);
    std::printf("%s: %.*s\n", kiln_origin_name(origin), static_cast<int>(code.size()),
                code.bytes().data());
}

static bool use_runtime()
{
    const char *c = "#include <kiln_kernel.h>\n"
                    "KILN_KERNEL(scale, KILN_VALUE(float, a), KILN_INOUT(float, x))\n"
                    "{ KILN_ITEMS_X(i) { x[i] *= a * FACTOR; } }\n";
    const char *opencl = "__kernel void scale(float a, __global float *x)\n"
                         "{ x[get_global_id(0)] *= a * FACTOR; }\n";
    const kiln::sources sources{
        kiln::source(KILN_LANG_OPENCL_C, "scale.cl", opencl).define("FACTOR", "3"),
        kiln::source(KILN_LANG_C, "scale.c", c).define("FACTOR", "3")};
    std::vector<float> x(1024, 2.0F);
    const kiln::runtime runtime;
    const kiln::device device = runtime.select(sources);
    const kiln::program program = device.build(sources);
    const kiln::buffer buffer(device, x.size() * sizeof(float));
    kiln::queue queue(device);
    queue.write(buffer, x);
    const kiln::event event = queue.launch(program, "scale", x.size(), 0.5F, buffer);
    event.wait();
    queue.read(buffer, x);
    std::printf("%s: %s, %g\n", device.info().name, kiln_origin_name(program.info().origin),
                static_cast<double>(x[0]));
    return x[0] == 3.0F && x[1023] == 3.0F;
}

int main()
{
    try {
        use_cache();
        return use_runtime() ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const kiln::error &e) {
        std::fprintf(stderr, "%s\n%s", e.what(), e.log().c_str());
        return EXIT_FAILURE;
    }
}
