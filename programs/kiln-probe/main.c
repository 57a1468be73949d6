/* kiln-probe BACKEND: probes one backend in this process and prints "probing", then the report, one
 * "name=value" a line, and "end" last. Without the first line it was not a driver that ended it.
 * The library runs it as a child, so that a driver that crashes or hangs takes only this program
 * with it. People use `kiln doctor`. Exit: 0 a report was printed, 2 wrong use, 3 no backend of
 * that name, which "unknown" and "end" on two lines say as well: a driver may end the process with
 * any code. */
#include <stdio.h>
#include <string.h>

#include <kiln/kiln.h>
#include <kiln/unstable/probe.h>

static void print_line(const char *name, const char *value)
{
    (void)printf("%s=", name);
    for (; *value != '\0'; value++) {
        (void)putchar(*value == '\n' || *value == '\r' ? ' ' : *value);
    }
    (void)putchar('\n');
}

int main(int argc, char **argv)
{
    kiln_probe_report report = {.struct_size = sizeof(report)};
    if (argc != 2) {
        (void)fprintf(stderr, "usage: kiln-probe BACKEND\n");
        return 2;
    }
    (void)puts("probing");
    if (fflush(stdout) != 0) {
        return 1;
    }
    if (kiln_backend_probe(argv[1], &report, NULL) != KILN_OK) {
        (void)printf("\nunknown\nend\n");
        return 3;
    }
    (void)putchar('\n'); /* a driver may have left half a line of its own */
    print_line("outcome", kiln_probe_outcome_name(report.outcome));
    print_line("backend", report.backend);
    print_line("library", report.library);
    print_line("version", report.version);
    print_line("why", report.why);
    print_line("fix", report.fix);
    (void)printf("devices=%u\nns=%llu\nend\n", (unsigned)report.device_count,
                 (unsigned long long)report.probe_ns);
    return fflush(stdout) == 0 ? 0 : 1;
}
