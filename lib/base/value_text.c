/* SPDX-License-Identifier: Apache-2.0 */
/* Values to text and back. */
#include "base/value_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static bool format_special(double value, char ret_text[PS_NUMBER_SIZE])
{
    const char *text = isnan(value) ? "nan" : value > 0 ? "inf" : "-inf";

    if (isfinite(value)) {
        return false;
    }
    (void)snprintf(ret_text, PS_NUMBER_SIZE, "%s", text);
    return true;
}

/* Every decimal of up to 15 (6) digits survives a normal double (float), and %g
 * drops trailing zeros, so that fewer digits need not be tried. */
void ps_f64_format(double value, char ret_text[PS_NUMBER_SIZE])
{
    if (format_special(value, ret_text)) {
        return;
    }
    for (int digits = fpclassify(value) == FP_SUBNORMAL ? 1 : 15; digits <= 17; digits++) {
        (void)snprintf(ret_text, PS_NUMBER_SIZE, "%.*g", digits, value);
        if (strtod(ret_text, NULL) == value) {
            return;
        }
    }
}

void ps_f32_format(float value, char ret_text[PS_NUMBER_SIZE])
{
    if (format_special((double)value, ret_text)) {
        return;
    }
    for (int digits = fpclassify(value) == FP_SUBNORMAL ? 1 : 6; digits <= 9; digits++) {
        (void)snprintf(ret_text, PS_NUMBER_SIZE, "%.*g", digits, (double)value);
        if (strtof(ret_text, NULL) == value) {
            return;
        }
    }
}

void ps_value_format(ps_type_t type, const void *value, char ret_text[PS_NUMBER_SIZE])
{
    int32_t i32 = 0;
    int64_t i64 = 0;
    float f32 = 0;
    double f64 = 0;

    switch (type) {
    case PS_TYPE_I32:
        memcpy(&i32, value, sizeof i32);
        (void)snprintf(ret_text, PS_NUMBER_SIZE, "%" PRId32, i32);
        break;
    case PS_TYPE_I64:
        memcpy(&i64, value, sizeof i64);
        (void)snprintf(ret_text, PS_NUMBER_SIZE, "%" PRId64, i64);
        break;
    case PS_TYPE_F32:
        memcpy(&f32, value, sizeof f32);
        ps_f32_format(f32, ret_text);
        break;
    case PS_TYPE_F64:
    default:
        memcpy(&f64, value, sizeof f64);
        ps_f64_format(f64, ret_text);
    }
}

bool ps_value_is_finite(ps_type_t type, const void *value)
{
    float f32 = 0;
    double f64 = 0;

    if (type == PS_TYPE_F32) {
        memcpy(&f32, value, sizeof f32);
        return isfinite(f32);
    }
    if (type == PS_TYPE_F64) {
        memcpy(&f64, value, sizeof f64);
        return isfinite(f64);
    }
    return true;
}

static bool parse_f32(const char *text, void *ret_value)
{
    double wide = 0;
    float value = 0;

    if (!ps_text_f64(text, &wide)) {
        return false;
    }
    /* strtof, not a cast: rounding twice would miss the nearest float. */
    value = strtof(text, NULL);
    if (isfinite(wide) && !isfinite(value)) {
        return false;
    }
    memcpy(ret_value, &value, sizeof value);
    return true;
}

bool ps_value_parse(ps_type_t type, const char *text, void *ret_value)
{
    int64_t i64 = 0;
    int32_t i32 = 0;
    double f64 = 0;

    switch (type) {
    case PS_TYPE_I32:
        if (!ps_text_i64(text, &i64) || i64 < INT32_MIN || i64 > INT32_MAX) {
            return false;
        }
        i32 = (int32_t)i64;
        memcpy(ret_value, &i32, sizeof i32);
        return true;
    case PS_TYPE_I64:
        if (!ps_text_i64(text, &i64)) {
            return false;
        }
        memcpy(ret_value, &i64, sizeof i64);
        return true;
    case PS_TYPE_F32:
        return parse_f32(text, ret_value);
    case PS_TYPE_F64:
    default:
        if (!ps_text_f64(text, &f64)) {
            return false;
        }
        memcpy(ret_value, &f64, sizeof f64);
        return true;
    }
}
