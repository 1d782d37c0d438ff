/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and values to text and back. */
#include "cli/output/json_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cli/output/output.h"

void ps_value_write_json(FILE *file, ps_type_t type, const void *value)
{
    char text[PS_NUMBER_SIZE];
    bool is_float = type == PS_TYPE_F32 || type == PS_TYPE_F64;

    ps_value_format(type, value, text);
    if (!ps_value_is_finite(type, value)) {
        ps_print(file, "\"%s\"", text);
    } else if (is_float && strpbrk(text, ".e") == NULL) {
        ps_print(file, "%s.0", text);
    } else {
        (void)fputs(text, file);
    }
}

static void format_scaled(double value, double step, const char *const *units, size_t n_units,
                          char ret_text[PS_NUMBER_SIZE])
{
    size_t unit = 0;

    while (unit + 1 < n_units && value >= step) {
        value /= step;
        unit++;
    }
    (void)snprintf(ret_text, PS_NUMBER_SIZE,
                   value >= 100 || value == floor(value) ? "%.0f %s" : "%.1f %s", value,
                   units[unit]);
}

void ps_bytes_format(double bytes, char ret_text[PS_NUMBER_SIZE])
{
    static const char *const UNITS[] = {"B", "KiB", "MiB", "GiB", "TiB"};

    format_scaled(bytes, 1024, UNITS, 5, ret_text);
}

void ps_rate_format(double bytes_s, char ret_text[PS_NUMBER_SIZE])
{
    static const char *const UNITS[] = {"B/s", "kB/s", "MB/s", "GB/s", "TB/s"};

    format_scaled(bytes_s, 1000, UNITS, 5, ret_text);
}

void ps_seconds_format(double seconds, char ret_text[PS_NUMBER_SIZE])
{
    static const char *const SMALL[] = {"us", "ms", "s"};

    if (seconds <= 0) {
        (void)snprintf(ret_text, PS_NUMBER_SIZE, "0 s");
    } else if (seconds < 120) {
        format_scaled(seconds * 1e6, 1000, SMALL, 3, ret_text);
    } else if (seconds < 7200) {
        (void)snprintf(ret_text, PS_NUMBER_SIZE, "%.0f min", seconds / 60);
    } else {
        (void)snprintf(ret_text, PS_NUMBER_SIZE, "%.1f h", seconds / 3600);
    }
}
