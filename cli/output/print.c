/* SPDX-License-Identifier: Apache-2.0 */
/* printf for data: what every writer of a format stands on. */
#include <stdarg.h>

#include "cli/output/output.h"

void ps_print(FILE *file, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    (void)vfprintf(file, format, arguments); /* ps_out_finish says whether it could */
    va_end(arguments);
}
