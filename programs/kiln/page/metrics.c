/* A line at a time. Only kiln's own families are kept; those of others must be well formed. */
#include "page/metrics.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/diag.h"
#include "cli/host.h"

/* One sample: pieces of the line, each ended by a NUL. */
typedef struct metrics_sample {
    const char *name, *labels;
    double value, time;
} metrics_sample;

typedef struct metrics_reader {
    metrics_set *set;
    const char *file;
    size_t first;  /* series of this file begin here */
    size_t series; /* that was last added to */
    size_t kept;   /* samples */
    double order;  /* of the exposition; stands for a time where samples have none */
} metrics_reader;

/* --- lines ------------------------------------------------------------------------------------ */

/* The end of a label list that begins after its brace; NULL: it is not one. */
static char *skip_labels(char *text)
{
    bool quoted = false;
    for (; *text != '\0'; text++) {
        if (quoted && *text == '\\' && text[1] != '\0') {
            text++;
        } else if (*text == '"') {
            quoted = !quoted;
        } else if (!quoted && *text == '}') {
            return text;
        }
    }
    return NULL;
}

static bool read_real(char **text, double *out_value)
{
    char *end = *text;
    *out_value = strtod(*text, &end);
    const bool good = end > *text && (*end == ' ' || *end == '\0');
    *text = end + (*end == ' ');
    return good;
}

/* "name{labels} value [time] [# exemplar]" */
static bool read_sample(char *line, metrics_sample *out)
{
    char *at = line;
    *out = (metrics_sample){.name = line, .labels = "", .time = NAN};
    while (isalnum((unsigned char)*at) != 0 || *at == '_' || *at == ':') {
        at++;
    }
    if (at == line || (*at != '{' && *at != ' ')) {
        return false;
    }
    const bool labelled = *at == '{';
    *at++ = '\0';
    if (labelled) {
        out->labels = at;
        at = skip_labels(at);
        if (at == NULL || at[1] != ' ') {
            return false;
        }
        *at = '\0';
        at += 2;
    }
    if (!read_real(&at, &out->value)) {
        return false;
    }
    return *at == '\0' || *at == '#' || read_real(&at, &out->time);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static metrics_series *find_series(metrics_reader *reader, const char *labels)
{
    metrics_set *set = reader->set;
    if (reader->series < set->count && strcmp(set->series[reader->series].labels, labels) == 0) {
        return &set->series[reader->series];
    }
    for (size_t i = reader->first; i < set->count; i++) {
        if (strcmp(set->series[i].labels, labels) == 0) {
            reader->series = i;
            return &set->series[i];
        }
    }
    metrics_series *grown =
        pool_grow(set->pool, set->series, &set->capacity, set->count, sizeof(*set->series));
    const char *copy = pool_text(set->pool, labels, strlen(labels));
    if (grown == NULL || copy == NULL) {
        return NULL;
    }
    set->series = grown;
    reader->series = set->count;
    set->series[set->count] = (metrics_series){.file = reader->file, .labels = copy};
    return &set->series[set->count++];
}

/* The point of the sample's time; samples without one belong to their exposition. */
static metrics_point *find_point(metrics_reader *reader, const metrics_sample *sample)
{
    metrics_series *series = find_series(reader, sample->labels);
    /* Less than any time: such points stay before those that have one, in their order. */
    const double time = isnan(sample->time) ? reader->order - 1e15 : sample->time;
    size_t low = 0;
    if (series == NULL) {
        return NULL;
    }
    for (size_t high = series->count; low < high;) {
        const size_t middle = low + (high - low) / 2;
        if (series->points[middle].time < time) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low < series->count && series->points[low].time <= time) {
        return &series->points[low];
    }
    metrics_point *grown = pool_grow(reader->set->pool, series->points, &series->capacity,
                                     series->count, sizeof(*series->points));
    if (grown == NULL) {
        return NULL;
    }
    series->points = grown;
    memmove(&series->points[low + 1], &series->points[low],
            (series->count - low) * sizeof(*series->points));
    series->points[low] = (metrics_point){.time = time};
    series->count++;
    return &series->points[low];
}

/* The counter that a family without "kiln_cache_" stands for; KILN_COUNTERS: none. */
static uint32_t find_counter(const char *name, double *scale)
{
    const size_t length = strlen(name);
    for (uint32_t i = 0; i < KILN_COUNTERS; i++) {
        const char *own = kiln_counter_name(i);
        const bool time = strcmp(kiln_counter_unit(i), "ns") == 0;
        const size_t stem = strlen(own) - (time ? 3 : 0);
        *scale = time ? 1e9 : 1;
        if (length > stem && strncmp(name, own, stem) == 0 &&
            strcmp(name + stem, time ? "_seconds_total" : "_total") == 0) {
            return i;
        }
    }
    return KILN_COUNTERS;
}

static kiln_status keep_sample(metrics_reader *reader, const metrics_sample *sample)
{
    static const char prefix[] = "kiln_cache_";
    double scale = 1;
    if (strncmp(sample->name, prefix, sizeof(prefix) - 1) != 0) {
        return KILN_OK;
    }
    const char *name = sample->name + sizeof(prefix) - 1;
    const uint32_t counter = find_counter(name, &scale);
    const bool gauge = strcmp(name, "entries") == 0 || strcmp(name, "size_bytes") == 0;
    if (counter == KILN_COUNTERS && !gauge) {
        return KILN_OK; /* of a reason, or of a later version */
    }
    const double value = sample->value * scale;
    if (!(value >= 0 && value < 9e18) || (!isnan(sample->time) && !(fabs(sample->time) < 9e9))) {
        return KILN_E_INVALID;
    }
    metrics_point *point = find_point(reader, sample);
    if (point == NULL) {
        return KILN_E_NOMEM;
    }
    uint64_t *place = counter < KILN_COUNTERS        ? &point->counters[counter]
                      : strcmp(name, "entries") == 0 ? &point->entries
                                                     : &point->bytes;
    *place = (uint64_t)llround(value);
    reader->kept++;
    return KILN_OK;
}

/* --- files ------------------------------------------------------------------------------------ */

static kiln_status refuse_line(const char *path, size_t line, kiln_diag *diag)
{
    return kiln_diag_set(diag, KILN_E_INVALID, "give what `kiln stats --openmetrics` printed", path,
                         "line %zu is not OpenMetrics text with values that kiln can have", line);
}

/* Times that stand for an order are taken back. */
static void end_file(const metrics_reader *reader)
{
    for (size_t i = reader->first; i < reader->set->count; i++) {
        metrics_series *series = &reader->set->series[i];
        for (size_t j = 0; j < series->count; j++) {
            if (series->points[j].time < -1e14) {
                series->points[j].time = NAN;
            }
        }
    }
}

/* Takes one line; *ended: the exposition is complete. */
static kiln_status take_line(metrics_reader *reader, char *line, bool *ended)
{
    metrics_sample sample;
    *ended = strcmp(line, "# EOF") == 0 || (*ended && *line == '\0');
    if (*ended) {
        reader->order += 1;
        return KILN_OK;
    }
    if (*line == '\0' || *line == '#') {
        return KILN_OK;
    }
    return read_sample(line, &sample) ? keep_sample(reader, &sample) : KILN_E_INVALID;
}

kiln_status metrics_parse(metrics_set *set, const char *path, char *text, size_t size,
                          kiln_diag *diag)
{
    static const char fix[] = "give what `kiln stats --openmetrics` printed";
    metrics_reader reader = {
        .set = set, .file = host_name_of(path), .first = set->count, .series = set->count};
    bool ended = false;
    size_t number = 0;
    if (strlen(text) != size) {
        return refuse_line(path, 1, diag);
    }
    for (char *line = text; *line != '\0';) {
        char *next = line + strcspn(line, "\n");
        const bool last = *next == '\0';
        *next = '\0';
        number++;
        const kiln_status status = take_line(&reader, line, &ended);
        if (status != KILN_OK) {
            return status == KILN_E_NOMEM ? diag_no_memory(diag, path)
                                          : refuse_line(path, number, diag);
        }
        line = next + !last;
    }
    if (!ended) {
        return kiln_diag_set(diag, KILN_E_INVALID, fix, path,
                             "does not end with \"# EOF\": it is cut, or is not OpenMetrics");
    }
    if (reader.kept == 0) {
        return kiln_diag_set(diag, KILN_E_INVALID, fix, path, "holds no metrics of kiln");
    }
    end_file(&reader);
    return KILN_OK;
}

kiln_status metrics_read(metrics_set *set, const char *path, kiln_diag *diag)
{
    char *text = NULL;
    size_t size = 0;
    kiln_status status = host_read_file(path, METRICS_MOST, &text, &size, diag);
    if (status == KILN_OK) {
        status = metrics_parse(set, path, text, size, diag);
    }
    free(text);
    return status;
}
