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

psd_status_t ps_curve_keys(ps_key_pair_t *ret_pair, bool *ret_has, ps_key_watch_t *ret_watch,
                           psd_error_t *err)
{
    ps_environment_t said = {.text = NULL};
    psd_status_t rc = ps_environment_read("PSD_KEY_FILE", &said, err);

    *ret_has = rc == PSD_OK && said.text != NULL && said.text[0] != '\0';
    if (ret_watch != NULL) { /* before it is read: one that comes in between is seen */
        ps_key_watch_begin(ret_watch, *ret_has ? said.text : "");
    }
    return *ret_has ? ps_key_file_read(said.text, ret_pair, err) : rc;
}

/* "#" and the digits of a key, at ret. false: it is none. */
static bool print_digits(const char *key, char *ret)
{
    uint8_t bytes[KEY_BYTES];
    bool ok = zmq_z85_decode(bytes, key) != NULL;

    ret[0] = MARK;
    for (size_t i = 0; ok && i < KEY_BYTES; i++) {
        (void)snprintf(ret + 1 + 2 * i, 3, "%02x", bytes[i]);
    }
    explicit_bzero(bytes, sizeof bytes);
    return ok;
}

bool ps_curve_print_token(const char *endpoint, const ps_key_pair_t *pair,
                          char ret[PS_TOKEN_MAX + 1])
{
    size_t length = strlen(endpoint);

    if (length > PS_ENDPOINT_MAX) {
        return false;
    }
    memcpy(ret, endpoint, length);
    return print_digits(pair->secret_key, ret + length);
}

psd_status_t ps_curve_read_token(const char *text, char ret_endpoint[PS_ENDPOINT_MAX + 1],
                                 ps_key_pair_t *ret_pair, psd_error_t *err)
{
    const char *mark = strrchr(text, MARK);
    size_t length = mark == NULL ? 0 : (size_t)(mark - text);
    char address[PS_ENDPOINT_MAX + 1];
    char server_key[PS_KEY_SIZE + 1] = "";
    uint8_t key[KEY_BYTES];
    bool ok = length > 0 && length <= PS_ENDPOINT_MAX && read_digits(mark + 1, key);

    if (ok) {
        memcpy(ret_endpoint, text, length);
        ret_endpoint[length] = '\0';
        ok = ps_curve_split(ret_endpoint, address, server_key, NULL) == PSD_OK &&
             server_key[0] != '\0' &&
             zmq_z85_encode(ret_pair->secret_key, key, KEY_BYTES) != NULL &&
             zmq_curve_public(ret_pair->public_key, ret_pair->secret_key) == 0;
    }
    explicit_bzero(key, sizeof key);
    (void)snprintf(ret_pair->name, sizeof ret_pair->name, "token");
    return ok ? PSD_OK
              : psd_error_set(err, PSD_INVALID,
                              "that is no token; allowed: the line that \"pscli node invite\" "
                              "or \"pscli auth invite\" prints, tcp://HOST:PORT#KEY#SECRET");
}
