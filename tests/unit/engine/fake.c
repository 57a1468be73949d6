/* See fake.h. */
#include "unit/engine/fake.h"

#include <string.h>

#include "base/diag.h"
#include "base/text.h"
#include "record/recorder.h"
#include "unit/store/support.h"

static const char text[] = "a program";

void kt_fake_output(kt_fake *fake, kn_output *output, kiln_diag *diag)
{
    fake->compiles++;
    output->outcome = fake->gives != KN_OUTCOME_NONE ? fake->gives : KN_OUTCOME_STORED;
    if (output->outcome == KN_OUTCOME_FAILED) {
        (void)kiln_diag_set(diag, KILN_E_COMPILE, NULL, "a fake", "it does not compile");
        fake->has = fake->partial;
        return;
    }
    if (output->outcome == KN_OUTCOME_PRIVATE) {
        output->reason = "it is a secret";
    }
    if (output->outcome != KN_OUTCOME_DEFERRED) {
        output->blob = ks_blob(text);
    }
    fake->has = !fake->frontend->loads_output || output->outcome == KN_OUTCOME_DEFERRED;
}

static void compile_fake(void *call, kn_output *output, kiln_diag *diag)
{
    kt_fake *fake = call;
    if (fake->during != NULL) {
        fake->during(fake);
    }
    kt_fake_output(fake, output, diag);
}

static kn_change find_change(void *call)
{
    return ((kt_fake *)call)->change;
}

static kn_loaded load_fake(void *call, kiln_blob *blob, kiln_diag *diag)
{
    kt_fake *fake = call;
    const bool fresh = fake->compiles > 0;
    const kn_loaded loaded = fresh && !fake->always ? KN_LOADED : fake->loads;
    fake->loads = fake->always ? fake->loads : KN_LOADED;
    assert_int_equal(kiln_blob_size(blob), sizeof(text) - 1);
    assert_memory_equal(kiln_blob_data(blob), text, sizeof(text) - 1);
    if (loaded == KN_LOADED) {
        fake->loaded++;
        fake->has = true;
    } else if (loaded == KN_LOAD_FAILED) {
        (void)kn_no_memory(diag, "a fake");
    }
    return loaded;
}

static void keep_fake(void *call)
{
    ((kt_fake *)call)->kept++;
}

static void record_fake(void *call, kn_draft *draft, char *target, size_t size)
{
    (void)call;
    draft->program.frontend = KN_FRONTEND_WALK;
    draft->program.language = KILN_LANG_OPENCL_C;
    draft->program.name = "a.cl";
    kn_draft_add_text(draft, text, sizeof(text) - 1, "", NULL, 0);
    kn_draft_add_closure(draft, NULL);
    kn_text_put(target, size, "opencl:test");
}

static void report_fake(void *call, const kn_job *job)
{
    kt_fake *fake = call;
    fake->reports++;
    kn_text_put(fake->origin, sizeof(fake->origin), kn_job_origin(job));
}

static void defer_fake(void *call)
{
    ((kt_fake *)call)->defers++;
}

static bool has_unstored(void *call)
{
    const kt_fake *leader = ((kt_fake *)call)->leader;
    return leader != NULL && leader->defers > 0;
}

static bool adopt_fake(void *call)
{
    kt_fake *fake = call;
    const bool there = has_unstored(call);
    fake->adopted += there ? 1 : 0;
    fake->has = fake->has || there;
    return there;
}

const kn_frontend kt_shim = {.compile = compile_fake,
                             .still_true = find_change,
                             .load = load_fake,
                             .keep = keep_fake,
                             .record = record_fake,
                             .report = report_fake,
                             .loads_output = true,
                             .own_failures = true};

const kn_frontend kt_driver = {.compile = compile_fake,
                               .still_true = find_change,
                               .load = load_fake,
                               .keep = keep_fake,
                               .record = record_fake,
                               .report = report_fake,
                               .driver_loads = true};

const kn_frontend kt_stage = {.compile = compile_fake,
                              .still_true = find_change,
                              .load = load_fake,
                              .keep = keep_fake,
                              .record = record_fake,
                              .report = report_fake,
                              .defer = defer_fake,
                              .is_made = has_unstored,
                              .adopt = adopt_fake,
                              .loads_output = true,
                              .driver_loads = true,
                              .retries = 3};

kn_request kt_request(kiln_cache *cache, kiln_recipe *recipe)
{
    return (kn_request){.cache = cache, .recipe = recipe, .name = "a.cl"};
}

kn_outcome kt_fake_run(kt_fake *fake, kiln_recipe *recipe)
{
    const kn_request request = kt_request(fake->cache, recipe);
    kn_job job;
    const kn_outcome outcome = kn_job_run(&job, fake->frontend, &request, fake);
    const bool good = outcome != KN_OUTCOME_FAILED && outcome != KN_OUTCOME_REFUSED;
    assert_int_equal(job.status == KILN_OK, good);
    assert_int_equal(job.why.status, job.status);
    fake->has = fake->has || (outcome == KN_OUTCOME_PRIVATE && job.blob != NULL);
    kn_job_deinit(&job);
    return outcome;
}
