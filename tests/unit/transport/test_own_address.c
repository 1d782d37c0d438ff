/* SPDX-License-Identifier: Apache-2.0 */
/* The own address on the way to psd, from endpoints of every form. */
#include <criterion/criterion.h>
#include <string.h>

#include "transport/discovery/own_address.h"

static char own[PS_ADDRESS_SIZE];
static psd_error_t *err;

static void make_error(void)
{
    err = psd_error_new();
}

static void drop_error(void)
{
    psd_error_destroy(&err);
}

TestSuite(own_address, .init = make_error, .fini = drop_error);

static const char *own_to(const char *endpoints)
{
    cr_assert_eq(ps_own_address_to(endpoints, own, err), PSD_OK, "%s: %s", endpoints,
                 psd_error_text(err));
    cr_assert_str_eq(psd_error_text(err), "");
    return own;
}

Test(own_address, is_the_one_on_the_route)
{
    cr_assert_str_eq(own_to("tcp://127.0.0.1:7171"), "127.0.0.1");
    cr_assert_str_eq(own_to("tcp://localhost:7171"), "127.0.0.1");
}

Test(own_address, is_loopback_where_no_endpoint_is_tcp)
{
    cr_assert_str_eq(own_to(""), "127.0.0.1");
    cr_assert_str_eq(own_to("ipc:///run/psd/psd.sock"), "127.0.0.1");
    cr_assert_str_eq(own_to("tcp://:7171,tcp://7171,tcp://,tcp"), "127.0.0.1");
}

Test(own_address, takes_the_first_endpoint_with_a_route)
{
    cr_assert_str_eq(own_to("ipc:///x,tcp://127.0.0.1:1"), "127.0.0.1");
    cr_assert_str_eq(own_to("tcp://999.0.0.1:1,tcp://127.0.0.1:1"), "127.0.0.1");
}

Test(own_address, names_the_host_that_is_not_reached)
{
    cr_assert_eq(ps_own_address_to("tcp://999.0.0.1:1", own, err), PSD_FAILED);
    cr_assert_not_null(strstr(psd_error_text(err), "host 999.0.0.1: "));
}

Test(own_address, knows_what_only_this_host_reaches)
{
    cr_assert(ps_address_is_local("127.0.0.9"));
    cr_assert(ps_address_is_local("::1"));
    cr_assert_not(ps_address_is_local("10.0.0.1"));
}

Test(own_address, knows_which_listener_an_endpoint_leads_to)
{
    static const struct {
        const char *endpoint;
        const char *listens;
        bool leads;
    } ROWS[] = {{"tcp://127.0.0.1:1", "tcp://127.0.0.1:1", true},
                {"tcp://127.0.0.1:1#00", "tcp://127.0.0.1:1", true},
                {"tcp://127.0.0.2:1", "tcp://127.0.0.1:1", false},
                {"tcp://localhost:1", "tcp://127.0.0.1:1", true},
                {"tcp://localhost:1", "tcp://[::1]:1", true},
                {"tcp://localhost:1", "tcp://192.0.2.1:1", false},
                {"tcp://127.0.0.9:1", "tcp://0.0.0.0:1", true},
                {"tcp://[::1]:1", "tcp://[::]:1", true},
                {"tcp://192.0.2.1:1", "tcp://0.0.0.0:1", false},
                {"tcp://999.0.0.1:1", "tcp://0.0.0.0:1", false},
                {"tcp://192.0.2.1:1", "tcp://192.0.2.1:1", true},
                {"ipc:///x", "tcp://127.0.0.1:1", false}};

    for (size_t i = 0; i < sizeof ROWS / sizeof *ROWS; i++) {
        cr_expect_eq(ps_own_address_leads_to(ROWS[i].endpoint, ROWS[i].listens), ROWS[i].leads,
                     "%s, %s", ROWS[i].endpoint, ROWS[i].listens);
    }
}
