/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_story.h"

#define LINES_MAX 2000 /* shown */

/* Prints the last lines of a trace file. */
static void print_end(FILE *trace)
{
    char line[512];
    size_t n = 0;
    size_t i = 0;

    rewind(trace);
    while (fgets(line, sizeof line, trace) != NULL) {
        n++;
    }
    rewind(trace);
    while (fgets(line, sizeof line, trace) != NULL) {
        if (++i + LINES_MAX > n) {
            (void)fputs(line, stdout);
        }
    }
}

void sim_story_show(void (*tell)(void *context, FILE *trace), void *context)
{
    FILE *trace = tmpfile();

    if (trace != NULL) {
        tell(context, trace);
        print_end(trace);
        (void)fclose(trace);
    }
}
