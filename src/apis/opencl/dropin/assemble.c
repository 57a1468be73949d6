/* See assemble.h. One thread works through what is to be assembled, a child process each.
 * It calls no driver, so a process may end while it works: the entry stays as it was. */
#include "apis/opencl/dropin/assemble.h"

#include <stdlib.h>

#include "base/checked.h"
#include "base/log.h"
#include "exec/worker.h"
#include "store/cache/cache.h"
#include "sys/clock.h"
#include "sys/process.h"

/* How long the end of a cache waits: a moment; or once as long as this process has lost by loading
 * text, which each start would lose again if the code never came to be. */
#define END_NS (500ull * 1000000ull)
#define END_MOST_NS (10ull * 1000000000ull)

struct kn_opencl_assembler {
    kiln_cache *cache;
    kn_worker *worker;
    uint32_t process; /* a forked child has not its thread */
    atomic_uint_least64_t worth_ns;
    atomic_bool ends;
};

typedef struct assembly {
    kn_worker_task task;
    kn_opencl_assembler *assembler;
    uint32_t capability;
    kiln_recipe *recipe;
    kiln_blob *blob;
} assembly;

bool kn_opencl_assemble_wanted(const kn_opencl_request *request, const kiln_blob *blob)
{
    const kn_opencl_wish *wish = request->wish;
    size_t size = kiln_blob_size(blob), code = 0;
    bool wanted = request->unit.capability > 0 && request->recipe != NULL &&
                  wish->device_count == 1 && kn_cache_outlasts(request->cache) &&
                  kn_nvidia_split(kiln_blob_data(blob), &size, &code) == NULL;
    for (size_t i = 0; i < wish->text_count && wanted; i++) {
        wanted = kn_nvidia_can_assemble(request->unit.capability, kiln_blob_data(blob), size,
                                        wish->texts[i].options);
    }
    return wanted && kn_nvidia_can_assemble(request->unit.capability, kiln_blob_data(blob), size,
                                            wish->link_options);
}

kiln_status kn_opencl_assemble_blob(uint32_t capability, const kiln_blob *blob,
                                    kiln_blob **out_blob, kiln_diag *diag)
{
    kn_strbuf code, both;
    kn_strbuf_init(&code, 0);
    kn_strbuf_init(&both, 0);
    kiln_status status =
        kn_nvidia_assemble(capability, (const char *)kiln_blob_data(blob), &code, diag);
    if (status == KILN_OK) {
        kn_nvidia_join(kiln_blob_data(blob), kiln_blob_size(blob), &code, &both);
        status = kn_strbuf_ok(&both)
                     ? kiln_blob_create(both.data, both.length, kiln_blob_facts(blob),
                                        kiln_blob_facts_size(blob), out_blob, diag)
                     : KILN_E_NOMEM;
    }
    kn_strbuf_deinit(&both);
    kn_strbuf_deinit(&code);
    return status;
}

static void assemble_one(void *user)
{
    assembly *job = (assembly *)user;
    kiln_cache *cache = job->assembler->cache;
    kiln_diag diag = KILN_DIAG_INIT;
    kiln_blob *both = NULL;
    if (!atomic_load(&job->assembler->ends)) {
        const kiln_status status =
            kn_opencl_assemble_blob(job->capability, job->blob, &both, &diag);
        if (status == KILN_OK) {
            /* The store logs its own errors. */
            kn_ignore(
                kiln_cache_put(cache, job->recipe, both, kiln_blob_compile_ns(job->blob), NULL));
        } else {
            kn_log_diag(KILN_LOG_DEBUG, "assembling an OpenCL program", &diag);
        }
    }
    kiln_diag_clear(&diag);
    kiln_blob_release(both);
    kiln_blob_release(job->blob);
    kiln_recipe_destroy(job->recipe);
    free(job);
}

kiln_status kn_opencl_assembler_create(kiln_cache *cache, kn_opencl_assembler **out_assembler,
                                       kiln_diag *diag)
{
    kn_opencl_assembler *assembler = calloc(1, sizeof(*assembler));
    if (assembler == NULL) {
        return KILN_E_NOMEM;
    }
    assembler->cache = cache;
    assembler->process = kn_process_id();
    atomic_init(&assembler->worth_ns, 0);
    atomic_init(&assembler->ends, false);
    const kiln_status status = kn_worker_create(&assembler->worker, diag);
    if (status != KILN_OK) {
        free(assembler);
        return status;
    }
    *out_assembler = assembler;
    return KILN_OK;
}

void kn_opencl_assembler_finish(kn_opencl_assembler *assembler)
{
    if (assembler != NULL && assembler->process == kn_process_id()) {
        const uint64_t worth = atomic_load(&assembler->worth_ns);
        const uint64_t limit = worth < END_NS ? END_NS : worth < END_MOST_NS ? worth : END_MOST_NS;
        (void)kn_worker_drain(assembler->worker, kn_clock_now() + limit);
        atomic_store(&assembler->ends, true);
    }
}

void kn_opencl_assembler_destroy(kn_opencl_assembler *assembler)
{
    if (assembler != NULL) {
        kn_opencl_assembler_finish(assembler);
        kn_worker_destroy(assembler->worker);
        free(assembler);
    }
}

void kn_opencl_assembler_add(kn_opencl_assembler *assembler, kn_opencl_request *request,
                             kiln_blob *blob, uint64_t worth_ns)
{
    assembly *job = calloc(1, sizeof(*job));
    if (job != NULL) {
        *job = (assembly){.assembler = assembler,
                          .capability = request->unit.capability,
                          .recipe = request->recipe,
                          .blob = kiln_blob_retain(blob)};
        request->recipe = NULL;
        atomic_fetch_add(&assembler->worth_ns, worth_ns);
        job->task.run = assemble_one;
        job->task.user = job;
        kn_worker_post(assembler->worker, &job->task);
    }
}
