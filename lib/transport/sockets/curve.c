/* SPDX-License-Identifier: Apache-2.0 */
/* Keys in endpoints: digits, because a key's own characters mean something there. */
#include "transport/sockets/curve.h"

#include <stdio.h>
#include <string.h>
#include <zmq.h>

#include "transport/environment/environment.h"

#define TCP "tcp://"
#define MARK '#'
#define KEY_BYTES 32
#define DIGITS ((size_t)2 * KEY_BYTES)

static int value_of(char digit)
{
    static const char ALL[] = "0123456789abcdef";
    const char *at = digit == '\0' ? NULL : strchr(ALL, digit);

    return at == NULL ? -1 : (int)(at - ALL);
}

static bool read_digits(const char *text, uint8_t ret[KEY_BYTES])
{
    if (strlen(text) != DIGITS) {
        return false;
    }
    for (size_t i = 0; i < KEY_BYTES; i++) {
        int high = value_of(text[2 * i]);
        int low = value_of(text[2 * i + 1]);

        if (high < 0 || low < 0) {
            return false;
        }
        ret[i] = (uint8_t)(high * 16 + low);
    }
    return true;
}

psd_status_t ps_curve_split(const char *endpoint, char ret_address[PS_ENDPOINT_MAX + 1],
                            char ret_key[PS_KEY_SIZE + 1], psd_error_t *err)
{
    const char *mark = strncmp(endpoint, TCP, strlen(TCP)) == 0 ? strchr(endpoint, MARK) : NULL;
    size_t length = mark == NULL ? strlen(endpoint) : (size_t)(mark - endpoint);
    uint8_t key[KEY_BYTES];

    ret_key[0] = '\0';
    if (length > PS_ENDPOINT_MAX) {
        return psd_error_set(err, PSD_INVALID, "an endpoint of %zu bytes; allowed: %d", length,
                             PS_ENDPOINT_MAX);
    }
    memcpy(ret_address, endpoint, length);
    ret_address[length] = '\0';
    if (mark != NULL &&
        (!read_digits(mark + 1, key) || zmq_z85_encode(ret_key, key, KEY_BYTES) == NULL)) {
        return psd_error_set(err, PSD_INVALID,
                             "endpoint is \"%.300s\"; what follows '#' is no key: allowed are 64 "
                             "digits, 0..9 and a..f",
                             endpoint);
    }
    return PSD_OK;
}

bool ps_curve_join(const char *endpoint, const char *public_key, char ret[PS_ENDPOINT_MAX + 1])
{
    uint8_t key[KEY_BYTES];
    int length = snprintf(ret, PS_ENDPOINT_MAX + 1, "%s", endpoint);

    if (length < 0 || length > PS_ENDPOINT_MAX) {
        return false;
    }
    if (strncmp(endpoint, TCP, strlen(TCP)) != 0) {
        return true;
    }
    if ((size_t)length + 1 + DIGITS > PS_ENDPOINT_MAX || zmq_z85_decode(key, public_key) == NULL) {
        return false;
    }
    ret[length++] = MARK;
    for (size_t i = 0; i < KEY_BYTES; i++) {
        (void)snprintf(ret + length + 2 * i, 3, "%02x", key[i]);
    }
    return true;
}

psd_status_t ps_curve_keys(ps_key_pair_t *ret_pair, bool *ret_has, psd_error_t *err)
{
    ps_environment_t said = {.text = NULL};
    psd_status_t rc = ps_environment_read("PSD_KEY_FILE", &said, err);

    *ret_has = rc == PSD_OK && said.text != NULL && said.text[0] != '\0';
    return *ret_has ? ps_key_file_read(said.text, ret_pair, err) : rc;
}
