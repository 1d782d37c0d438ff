/* SPDX-License-Identifier: Apache-2.0 */
/* lib/transport/sockets/curve.h: keys and tokens as text. */
#include "transport/sockets/curve.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static ps_key_pair_t server;
static ps_key_pair_t token;
static char endpoint[PS_ENDPOINT_MAX + 1];

static void make(void)
{
    cr_assert_eq(ps_key_pair_make("server", &server, NULL), PSD_OK);
    cr_assert_eq(ps_key_pair_make("token", &token, NULL), PSD_OK);
    cr_assert(ps_curve_join("tcp://192.0.2.1:7171", server.public_key, endpoint));
}

TestSuite(curve, .init = make);

Test(curve, a_token_has_the_endpoint_and_a_pair)
{
    ps_key_pair_t pair = {.name = ""};
    char text[PS_TOKEN_MAX + 1];
    char read[PS_ENDPOINT_MAX + 1];

    cr_assert(ps_curve_print_token(endpoint, &token, text));
    cr_assert_eq(ps_curve_read_token(text, read, &pair, NULL), PSD_OK);
    cr_assert_str_eq(read, endpoint);
    cr_assert_str_eq(pair.public_key, token.public_key);
    cr_assert_str_eq(pair.secret_key, token.secret_key);
}

static void expect_none(const char *text)
{
    PSD_AUTO(psd_error_destroy) psd_error_t *err = psd_error_new();
    ps_key_pair_t pair = {.name = ""};
    char read[PS_ENDPOINT_MAX + 1];

    cr_assert_eq(ps_curve_read_token(text, read, &pair, err), PSD_INVALID, "%s", text);
    cr_assert(strlen(text) < 32 || strstr(psd_error_text(err), text) == NULL);
}

Test(curve, what_is_no_token_is_refused_and_not_shown)
{
    char text[PS_TOKEN_MAX + 1];
    char longer[PS_TOKEN_MAX + 1 + 1];
    char huge[PS_TOKEN_MAX + 200];

    cr_assert(ps_curve_print_token(endpoint, &token, text));
    (void)snprintf(longer, sizeof longer, "%s0", text);
    expect_none(longer);
    expect_none("");
    expect_none("#");
    expect_none("tcp://192.0.2.1:7171");
    expect_none(endpoint); /* names a key, and has no secret */
    text[strlen(text) - 1] = 'g';
    expect_none(text);
    text[strlen(text) - 1] = '\0';
    expect_none(text);
    memset(huge, '#', sizeof huge - 1);
    huge[sizeof huge - 1] = '\0';
    expect_none(huge);
}
