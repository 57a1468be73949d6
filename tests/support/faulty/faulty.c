/* A broken driver: crashes, hangs or ends the process, as $KILN_FAULTY says, when it is asked for
 * anything. It never gets as far as an API, so it needs no header of one. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void misbehave(void)
{
    const char *how = getenv("KILN_FAULTY");
    if (how == NULL || strcmp(how, "crash") == 0) {
        (void)raise(SIGSEGV);
    }
    if (how != NULL && strcmp(how, "abort") == 0) {
        abort();
    }
    if (how != NULL && strcmp(how, "exit") == 0) {
        exit(0);
    }
    for (;;) {
        (void)pause();
    }
}

/* Vulkan: what the loader calls first, and second. */
int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version);
int vk_icdNegotiateLoaderICDInterfaceVersion(uint32_t *version)
{
    *version = 4;
    return 0;
}

typedef void any_function(void);
any_function *vk_icdGetInstanceProcAddr(void *instance, const char *name);
any_function *vk_icdGetInstanceProcAddr(void *instance, const char *name)
{
    (void)instance;
    (void)name;
    misbehave();
    return NULL;
}

/* EGL: what glvnd calls when it opens a vendor's library. */
int __egl_Main(uint32_t version, const void *exports, void *vendor, void *imports);
int __egl_Main(uint32_t version, const void *exports, void *vendor, void *imports)
{
    (void)version;
    (void)exports;
    (void)vendor;
    (void)imports;
    misbehave();
    return 0;
}

/* OpenCL: what a loader calls for the rest of the driver's functions. */
void *clGetExtensionFunctionAddress(const char *name);
void *clGetExtensionFunctionAddress(const char *name)
{
    (void)name;
    misbehave();
    return NULL;
}
