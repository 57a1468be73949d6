/* The hipRTC functions of the shim that NVRTC does not have, and the table of all. Compiled twice:
 * for a separate hipRTC library, and with KN_HIPRTC_INSIDE for the hipRTC inside HIP's runtime. */
#include <limits.h>
#include <stdlib.h>

#include "apis/hip/shim/hiprtc_api.h"
#include "apis/hip/shim/hiprtc_kind.h"
#include "interpose/rtc_stubs.h"
#include "interpose/session.h"
#include "kiln/export.h"

static const kn_rtc_calls *open_hiprtc(void);

static const kn_hiprtc_real *real; /* set once, before the table is given out */
static kn_rtc_library library = {
    .kind = &kn_hiprtc_kind,
    .open = open_hiprtc,
#ifdef KN_HIPRTC_INSIDE
    .recorded = KN_RECORDED_RUNTIME,
#endif
    .lock = {PTHREAD_MUTEX_INITIALIZER},
};

/* --- the real library ------------------------------------------------------------------------- */

#define IN_TURN(name, parameters, call)                                                            \
    static int name parameters                                                                     \
    {                                                                                              \
        kn_hiprtc_turn_take(real->major);                                                          \
        const int code = real->open()->call;                                                       \
        kn_hiprtc_turn_end(real->major);                                                           \
        return code;                                                                               \
    }
IN_TURN(compile_real, (void *program, int count, const char *const *options),
        hiprtcCompileProgram(program, count, options))
IN_TURN(express_real, (void *program, const char *expression),
        hiprtcAddNameExpression(program, expression))
IN_TURN(lower_real, (void *program, const char *expression, const char **name),
        hiprtcGetLoweredName(program, expression, name))
IN_TURN(link_real, (hiprtcLinkState state, void **data, size_t *size),
        hiprtcLinkComplete(state, data, size))

static const kn_rtc_calls *open_hiprtc(void)
{
    static kn_mutex lock = KN_MUTEX_INIT;
    static kn_rtc_calls calls;
    const kn_hiprtc_table *table = real->open();
    kn_mutex_lock(&lock);
    if (table != NULL && calls.create == NULL) {
        calls = (kn_rtc_calls){
            .version = table->hiprtcVersion,
            .create = table->hiprtcCreateProgram,
            .destroy = table->hiprtcDestroyProgram,
            .compile = compile_real,
            .add_expression = express_real,
            .get_lowered = lower_real,
            .outputs = {
                [KN_RTC_LOG] = {table->hiprtcGetProgramLogSize, table->hiprtcGetProgramLog},
                [KN_RTC_CODE] = {table->hiprtcGetCodeSize, table->hiprtcGetCode},
                [KN_RTC_BITCODE] = {table->hiprtcGetBitcodeSize, table->hiprtcGetBitcode},
            }};
    }
    const bool opened = calls.create != NULL;
    kn_mutex_unlock(&lock);
    return opened ? &calls : NULL;
}

/* --- calls that are hipRTC's alone ------------------------------------------------------------ */

/* "9.0" */
static bool read_version(const char *text, int *major, int *minor)
{
    char *end = NULL;
    const long first = strtol(text, &end, 10);
    const long second = *end == '.' ? strtol(end + 1, &end, 10) : -1;
    const bool good =
        second >= 0 && *end == '\0' && first >= 0 && first <= INT_MAX && second <= INT_MAX;
    if (good) {
        *major = (int)first;
        *minor = (int)second;
    }
    return good;
}

static int call_hiprtcVersion(int *major, int *minor)
{
    kn_rtc_identity identity;
    if (major != NULL && minor != NULL &&
        kn_rtc_library_identify(&library, &identity, NULL) == KILN_OK &&
        read_version(identity.fields[1].text, major, minor)) {
        return 0;
    }
    return KN_RTC_ASK(real, hiprtcVersion, (major, minor));
}

/* Links are the real library's. What it makes of them is not kept. */
static int call_hiprtcLinkComplete(hiprtcLinkState state, void **data, size_t *size)
{
    const kn_hiprtc_table *table = real->open();
    kn_session_bypass(library.kind->what, "link", "hiprtcLinkComplete is not cached", 0);
    return table != NULL && table->hiprtcLinkComplete != NULL ? link_real(state, data, size)
                                                              : KN_RTC_INTERNAL_ERROR;
}

/* --- the table -------------------------------------------------------------------------------- */

KN_RTC_STUBS(hiprtc, &library)
KN_RTC_OUTPUT(hiprtc, Code, &library, KN_RTC_CODE)
KN_RTC_OUTPUT(hiprtc, Bitcode, &library, KN_RTC_BITCODE)
KN_RTC_OWN(real, hiprtcLinkCreate,
           (unsigned count, int *options, void **values, hiprtcLinkState *state),
           (count, options, values, state))
KN_RTC_OWN(real, hiprtcLinkAddFile,
           (hiprtcLinkState state, int type, const char *path, unsigned count, int *options,
            void **values),
           (state, type, path, count, options, values))
KN_RTC_OWN(real, hiprtcLinkAddData,
           (hiprtcLinkState state, int type, void *data, size_t size, const char *name,
            unsigned count, int *options, void **values),
           (state, type, data, size, name, count, options, values))
KN_RTC_OWN(real, hiprtcLinkDestroy, (hiprtcLinkState state), (state))
KN_RTC_ERROR_STRING(hiprtc, "HIPRTC", real)

static const kn_hiprtc_table made = {
#define X(name, parameters, arguments) .name = call_##name,
#include "apis/hip/shim/hiprtc_calls.def"
#undef X
    .hiprtcGetErrorString = call_hiprtcGetErrorString,
};

#ifdef KN_HIPRTC_INSIDE
#define kn_interpose_hiprtc kn_interpose_hiprtc_inside
#endif
KILN_API kn_interpose_hiprtc_fn kn_interpose_hiprtc;
const kn_hiprtc_table *kn_interpose_hiprtc(const kn_hiprtc_real *opener)
{
    kiln_cache *cache = kn_session_cache();
    void *state =
        cache != NULL && real == NULL ? kn_hiprtc_state_create(opener->path, cache) : NULL;
    if (state == NULL) {
        return NULL;
    }
    real = opener;
    library.path = opener->path;
    library.state = state;
    return &made;
}
