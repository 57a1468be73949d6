/* kiln for C++17: owners, exceptions and spans of bytes around the C API, and nothing else.
 *
 * Every class owns one C object, moves and does not copy, and gives the object with get(). What can
 * fail throws kiln::error, which carries the whole diag: status, what, why, what to do, and the
 * compiler's log. A miss is not an error: lookups return an empty kiln::blob. Nothing here is
 * compiled into the library; mix freely with the C calls.
 *
 *     kiln::cache cache;
 *     kiln::recipe recipe("my-engine.spirv", 1);
 *     recipe.add("source", text).add("compiler", version);
 *     kiln::blob code = cache.get_or_compile(recipe, [&] { return kiln::blob(compile(text)); });
 *
 *     kiln::runtime runtime;
 *     kiln::source source(KILN_LANG_OPENCL_C, "saxpy.cl", text);
 *     kiln::device device = runtime.select({source});
 *     kiln::program program = device.build({source});
 *     kiln::buffer x(device, bytes), y(device, bytes);
 *     kiln::queue queue(device);
 *     queue.launch(program, "saxpy", {count}, 2.5F, x, y);
 *     queue.read(y, data);
 */
#ifndef KILN_KILN_HPP
#define KILN_KILN_HPP

#include "kiln/cpp/cache.hpp"
#include "kiln/cpp/error.hpp"
#include "kiln/cpp/runtime.hpp"
#include "kiln/kiln.h"

#endif
