/* The functions that stand in for hipRTC's: the table, once for each place that hipRTC has. */
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apis/hip/shim/hiprtc_api.h"
#include "apis/hip/shim/hiprtc_kind.h"
#include "interpose/rtc_calls.h"
#include "interpose/session.h"
#include "kiln/export.h"

typedef struct place {
    const kn_hiprtc_real *real; /* set once, before the table is given out */
    kn_rtc_library library;
    kn_mutex lock;
    kn_rtc_calls calls; /* of the real library, once it is open */
} place;

static const kn_rtc_calls *open_hiprtc(place *of);
static const kn_rtc_calls *open_apart(void);
static const kn_rtc_calls *open_inside(void);

static place places[KN_HIPRTC_PLACES] = {
    {.library = {.kind = &kn_hiprtc_kind, .open = open_apart, .lock = {PTHREAD_MUTEX_INITIALIZER}},
     .lock = {PTHREAD_MUTEX_INITIALIZER}},
    {.library = {.kind = &kn_hiprtc_kind,
                 .open = open_inside,
                 .recorded = KN_RECORDED_RUNTIME,
                 .lock = {PTHREAD_MUTEX_INITIALIZER}},
     .lock = {PTHREAD_MUTEX_INITIALIZER}}};

/* --- one call at a time ----------------------------------------------------------------------- */

/* ROCm 5 has a lock around these calls that is broken. It cannot tell threads apart that have never
 * called HIP, so it admits them all at once, and LLVM is not thread-safe there. A thread that waits
 * for one that has called HIP, or has loaded the library, crashes. Without kiln the loading thread
 * seldom compiles; under kiln it does. So kiln lets one thread in at a time, up to ROCm 6. */
#define LAST_WITH_LOCK 6
static struct {
    pthread_once_t once;
    pthread_mutex_t mutex;
} turns = {.once = PTHREAD_ONCE_INIT};

/* Recursive: a compile may call hipRTC through a library in between. Made anew in the child of a
 * fork, which does not have the thread that held it. */
static void make_mutex(void)
{
    pthread_mutexattr_t kind;
    if (pthread_mutexattr_init(&kind) == 0) {
        (void)pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
        (void)pthread_mutex_init(&turns.mutex, &kind);
        (void)pthread_mutexattr_destroy(&kind);
    }
}

static void prepare_turns(void)
{
    make_mutex();
    /* Without memory for it, the child of a process that was compiling waits for ever. */
    (void)pthread_atfork(NULL, NULL, make_mutex);
}

static void take_turn(const kn_hiprtc_real *real)
{
    if (real->major <= LAST_WITH_LOCK) {
        (void)pthread_once(&turns.once, prepare_turns);
        (void)pthread_mutex_lock(&turns.mutex);
    }
}

static hiprtcResult end_turn(const kn_hiprtc_real *real, hiprtcResult result)
{
    if (real->major <= LAST_WITH_LOCK) {
        (void)pthread_mutex_unlock(&turns.mutex);
    }
    return result;
}

#define IN_TURN(name, at, parameters, call)                                                        \
    static hiprtcResult name##_##at parameters                                                     \
    {                                                                                              \
        take_turn(places[at].real);                                                                \
        return end_turn(places[at].real, places[at].real->open()->call);                           \
    }

#define TURNS(at)                                                                                  \
    IN_TURN(real_compile, at, (hiprtcProgram program, int count, const char *const *options),      \
            hiprtcCompileProgram(program, count, options))                                         \
    IN_TURN(real_express, at, (hiprtcProgram program, const char *expression),                     \
            hiprtcAddNameExpression(program, expression))                                          \
    IN_TURN(real_lowered, at, (hiprtcProgram program, const char *expression, const char **name),  \
            hiprtcGetLoweredName(program, expression, name))                                       \
    IN_TURN(real_link, at, (hiprtcLinkState state, void **data, size_t *size),                     \
            hiprtcLinkComplete(state, data, size))

TURNS(KN_HIPRTC_APART)
TURNS(KN_HIPRTC_INSIDE)

/* --- the real library ------------------------------------------------------------------------- */

static const kn_rtc_calls *open_apart(void)
{
    return open_hiprtc(&places[KN_HIPRTC_APART]);
}

static const kn_rtc_calls *open_inside(void)
{
    return open_hiprtc(&places[KN_HIPRTC_INSIDE]);
}

static const kn_rtc_calls *open_hiprtc(place *of)
{
    const kn_hiprtc_table *real = of->real->open();
    kn_mutex_lock(&of->lock);
    if (real != NULL && of->calls.create == NULL) {
        of->calls = (kn_rtc_calls){
            .version = real->hiprtcVersion,
            .create = real->hiprtcCreateProgram,
            .destroy = real->hiprtcDestroyProgram,
            .compile = of == places ? real_compile_KN_HIPRTC_APART : real_compile_KN_HIPRTC_INSIDE,
            .add_expression =
                of == places ? real_express_KN_HIPRTC_APART : real_express_KN_HIPRTC_INSIDE,
            .get_lowered =
                of == places ? real_lowered_KN_HIPRTC_APART : real_lowered_KN_HIPRTC_INSIDE,
            .outputs = {
                [KN_RTC_LOG] = {real->hiprtcGetProgramLogSize, real->hiprtcGetProgramLog},
                [KN_RTC_CODE] = {real->hiprtcGetCodeSize, real->hiprtcGetCode},
                [KN_RTC_BITCODE] = {real->hiprtcGetBitcodeSize, real->hiprtcGetBitcode},
            }};
    }
    const kn_rtc_calls *calls = of->calls.create != NULL ? &of->calls : NULL;
    kn_mutex_unlock(&of->lock);
    return calls;
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

static hiprtcResult ask_hiprtc_version(place *of, int *major, int *minor)
{
    kn_rtc_identity identity;
    if (major != NULL && minor != NULL &&
        kn_rtc_library_identify(&of->library, &identity, NULL) == KILN_OK &&
        read_version(identity.fields[1].text, major, minor)) {
        return 0;
    }
    const kn_hiprtc_table *real = of->real->open();
    return real != NULL ? real->hiprtcVersion(major, minor) : KN_RTC_INTERNAL_ERROR;
}

/* hipRTC's texts for the codes that every version has; the rest are its own to give. */
static const char *ask_hiprtc_error(place *of, hiprtcResult result)
{
    static const char *const texts[] = {"HIPRTC_SUCCESS",
                                        "HIPRTC_ERROR_OUT_OF_MEMORY",
                                        "HIPRTC_ERROR_PROGRAM_CREATION_FAILURE",
                                        "HIPRTC_ERROR_INVALID_INPUT",
                                        "HIPRTC_ERROR_INVALID_PROGRAM",
                                        "HIPRTC_ERROR_INVALID_OPTION",
                                        "HIPRTC_ERROR_COMPILATION"};
    if (result >= 0 && result < (int)(sizeof(texts) / sizeof(texts[0]))) {
        return texts[result];
    }
    const kn_hiprtc_table *real = of->real->open();
    return real != NULL ? real->hiprtcGetErrorString(result) : "HIPRTC_ERROR_INTERNAL_ERROR";
}

/* Links are the real library's. What it makes of them is not kept. */
static void count_link(place *of)
{
    kn_session_bypass(of->library.kind->what, "link", "hiprtcLinkComplete is not cached", 0);
}

/* --- the tables ------------------------------------------------------------------------------- */

#define FUNCTION(name, at, parameters, value)                                                      \
    static hiprtcResult name##_##at parameters                                                     \
    {                                                                                              \
        return value;                                                                              \
    }
/* The library's own function, as it is. */
#define REAL(name, at, function, parameters, arguments)                                            \
    static hiprtcResult name##_##at parameters                                                     \
    {                                                                                              \
        const kn_hiprtc_table *real = places[at].real->open();                                     \
        return real != NULL && real->function != NULL ? real->function arguments                   \
                                                      : KN_RTC_INTERNAL_ERROR;                     \
    }
#define OUTPUT(name, at, part)                                                                     \
    FUNCTION(size_of_##name, at, (hiprtcProgram program, size_t * size),                           \
             kn_rtc_call_size(&places[at].library, program, part, size))                           \
    FUNCTION(bytes_of_##name, at, (hiprtcProgram program, char *bytes),                            \
             kn_rtc_call_bytes(&places[at].library, program, part, bytes))

#define PLACE(at)                                                                                  \
    FUNCTION(version, at, (int *major, int *minor), ask_hiprtc_version(&places[at], major, minor)) \
    FUNCTION(create, at,                                                                           \
             (hiprtcProgram * program, const char *source, const char *name, int header_count,     \
              const char *const *headers, const char *const *header_names),                        \
             kn_rtc_call_create(&places[at].library, program, source, name, header_count, headers, \
                                header_names))                                                     \
    FUNCTION(destroy, at, (hiprtcProgram * program),                                               \
             kn_rtc_call_destroy(&places[at].library, program))                                    \
    FUNCTION(compile, at, (hiprtcProgram program, int option_count, const char *const *options),   \
             kn_rtc_call_compile(&places[at].library, program, option_count, options))             \
    FUNCTION(express, at, (hiprtcProgram program, const char *expression),                         \
             kn_rtc_call_add_expression(&places[at].library, program, expression))                 \
    FUNCTION(lowered, at, (hiprtcProgram program, const char *expression, const char **lowered),   \
             kn_rtc_call_lowered(&places[at].library, program, expression, lowered))               \
    OUTPUT(log, at, KN_RTC_LOG)                                                                    \
    OUTPUT(code, at, KN_RTC_CODE)                                                                  \
    OUTPUT(bitcode, at, KN_RTC_BITCODE)                                                            \
    REAL(link_create, at, hiprtcLinkCreate,                                                        \
         (unsigned count, int *options, void **values, hiprtcLinkState *state),                    \
         (count, options, values, state))                                                          \
    REAL(link_file, at, hiprtcLinkAddFile,                                                         \
         (hiprtcLinkState state, int type, const char *path, unsigned count, int *options,         \
          void **values),                                                                          \
         (state, type, path, count, options, values))                                              \
    REAL(link_data, at, hiprtcLinkAddData,                                                         \
         (hiprtcLinkState state, int type, void *data, size_t size, const char *name,              \
          unsigned count, int *options, void **values),                                            \
         (state, type, data, size, name, count, options, values))                                  \
    REAL(link_destroy, at, hiprtcLinkDestroy, (hiprtcLinkState state), (state))                    \
    static hiprtcResult link_complete_##at(hiprtcLinkState state, void **data, size_t *size)       \
    {                                                                                              \
        const kn_hiprtc_table *real = places[at].real->open();                                     \
        count_link(&places[at]);                                                                   \
        return real != NULL && real->hiprtcLinkComplete != NULL                                    \
                   ? real_link_##at(state, data, size)                                             \
                   : KN_RTC_INTERNAL_ERROR;                                                        \
    }                                                                                              \
    static const char *error_string_##at(hiprtcResult result)                                      \
    {                                                                                              \
        return ask_hiprtc_error(&places[at], result);                                              \
    }

#define TABLE(at)                                                                                  \
    {                                                                                              \
        .hiprtcVersion = version_##at, .hiprtcCreateProgram = create_##at,                         \
        .hiprtcDestroyProgram = destroy_##at, .hiprtcCompileProgram = compile_##at,                \
        .hiprtcAddNameExpression = express_##at, .hiprtcGetLoweredName = lowered_##at,             \
        .hiprtcGetProgramLogSize = size_of_log_##at, .hiprtcGetProgramLog = bytes_of_log_##at,     \
        .hiprtcGetCodeSize = size_of_code_##at, .hiprtcGetCode = bytes_of_code_##at,               \
        .hiprtcGetBitcodeSize = size_of_bitcode_##at, .hiprtcGetBitcode = bytes_of_bitcode_##at,   \
        .hiprtcLinkCreate = link_create_##at, .hiprtcLinkAddFile = link_file_##at,                 \
        .hiprtcLinkAddData = link_data_##at, .hiprtcLinkComplete = link_complete_##at,             \
        .hiprtcLinkDestroy = link_destroy_##at, .hiprtcGetErrorString = error_string_##at,         \
    }

PLACE(KN_HIPRTC_APART)
PLACE(KN_HIPRTC_INSIDE)

static const kn_hiprtc_table tables[KN_HIPRTC_PLACES] = {TABLE(KN_HIPRTC_APART),
                                                         TABLE(KN_HIPRTC_INSIDE)};

KILN_API const kn_hiprtc_table *kn_interpose_hiprtc(const kn_hiprtc_real *real);
const kn_hiprtc_table *kn_interpose_hiprtc(const kn_hiprtc_real *real)
{
    place *of = &places[real->place];
    kiln_cache *cache = kn_session_cache();
    void *state =
        cache != NULL && of->real == NULL ? kn_hiprtc_state_create(real->path, cache) : NULL;
    if (state == NULL) {
        return NULL;
    }
    of->real = real;
    of->library.path = real->path;
    of->library.state = state;
    return &tables[real->place];
}
