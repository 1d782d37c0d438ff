/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Room lib/server/config: the settings of a node
 *
 * It is       One table of all settings, config_keys.def: the schema of psd.yaml,
 *             the struct, the checks and --print-config follow from it. Also the
 *             data directory, endpoints as text, plug-ins, small sealed files.
 * It uses     lib/transport (environment, lane), lib/storage/disk,
 *             lib/model/updaters, lib/wire/messages, lib/base.
 * It ignores  YAML and flags (daemon/config_file.c, daemon/main.c), and what a
 *             setting does.
 * Start at    config_keys.def, config.c for a value, config_rules.c for rules
 *             between values.
 */
/*
 * ps_config - every setting of the daemon, and where its value came from
 *
 * What     Filled in the order default, file, environment, flag; the later one
 *          wins. Each value is checked as it comes; rules between values by
 *          ps_config_check.
 * Shape    one member per row of config_keys.def
 * Owner    The caller; ps_config_done frees what it holds.
 */
#ifndef PS_SERVER_CONFIG_H
#define PS_SERVER_CONFIG_H

#include "base/bytes.h"

/* X(KIND, C type) */
#define PS_KEY_KINDS(X)                                                   \
    X(PATH, char *)                                                       \
    X(DIR, char *)          /* a path; "" none */                         \
    X(NAME, char *)         /* ps_text_is_name */                         \
    X(HOST, char *)         /* letters, digits, '.', '-', ':'; "" none */ \
    X(URLS, ps_text_list_t) /* tcp://HOST:PORT, ipc://PATH */             \
    X(PORTS, ps_ports_t)    /* FIRST-LAST; "" none */                     \
    X(UINT, uint64_t)                                                     \
    X(SIZE, uint64_t) /* as ps_text_size */                               \
    X(LEVEL, int)     /* ps_log_level_t */                                \
    X(PEERS, int)     /* ps_door_peers_t: owner, group, any */            \
    X(GUARD, int)     /* ps_security_level_t: plain, encrypt */           \
    X(BOOL, bool)

#define PS_KIND_ENUM_ROW(KIND, type) PS_KEY_KIND_##KIND,
typedef enum ps_key_kind { PS_KEY_KINDS(PS_KIND_ENUM_ROW) } ps_key_kind_t;
#undef PS_KIND_ENUM_ROW

typedef enum ps_security_level {
    PS_SECURITY_PLAIN = 0,  /* no keys: whoever reaches a port may do everything */
    PS_SECURITY_ENCRYPT = 1 /* tcp by CURVE alone, and rights are checked */
} ps_security_level_t;

typedef struct ps_text_list {
    char **items; /* owned, each too */
    size_t n_items;
} ps_text_list_t;

typedef struct ps_ports {
    uint16_t first; /* 0: none are given */
    uint16_t last;  /* at least first */
} ps_ports_t;

#define PS_KIND_TYPE_ROW(KIND, type) typedef type ps_value_##KIND##_t;
PS_KEY_KINDS(PS_KIND_TYPE_ROW)
#undef PS_KIND_TYPE_ROW

#define ROOT(path, kind, member, ...) PS_KEY_##member,
#define KEY(path, kind, section, member, ...) PS_KEY_##section##_##member,
typedef enum ps_key_id {
#include "server/config/config_keys.def"
    PS_KEY_COUNT
} ps_key_id_t;

typedef enum ps_setting_source {
    PS_SOURCE_DEFAULT = 0,
    PS_SOURCE_FILE = 1,
    PS_SOURCE_ENV = 2,
    PS_SOURCE_FLAG = 3
} ps_setting_source_t;

/* Where a value came from; what it is called in an error. */
typedef struct ps_origin {
    ps_setting_source_t source;
    const char *file; /* FILE; borrowed until ps_config_done */
    unsigned line;    /* FILE; from 1; 0: the file as a whole */
    const char *flag; /* FLAG: "--shards"; static */
} ps_origin_t;

/* What a start does to the registry of its data directory. */
typedef enum ps_recover {
    PS_RECOVER_NOT = 0,
    PS_RECOVER_FORCE,  /* it goes on without the others */
    PS_RECOVER_REBUILD /* there is none: it is made from the nodes */
} ps_recover_t;

typedef struct ps_config {
#define ROOT(path, kind, member, ...) ps_value_##kind##_t member;
#define BEGIN(section) struct {
#define KEY(path, kind, section, member, ...) ps_value_##kind##_t member;
#define END(section) \
    }                \
    section;
#include "server/config/config_keys.def"
    ps_origin_t origins[PS_KEY_COUNT];
    char *file; /* owned; the file that was loaded, or NULL */
    /* by flags only, as they are for one start */
    bool accept_loss;
    bool recover_anyway; /* also when others answer */
    ps_recover_t recover;
} ps_config_t;

/* One row of config_keys.def. */
typedef struct ps_key {
    ps_key_id_t id;
    ps_key_kind_t kind;
    const char *path;    /* "limits.chunk_bytes" */
    const char *section; /* "limits"; "" for one at the root */
    const char *member;  /* "chunk_bytes" */
    const char *unit;
    uint64_t min;
    uint64_t max;
    const char *fallback; /* as it would be typed; "" is worked out */
    bool reloadable;      /* SIGHUP applies a new value */
    const char *help;
    size_t offset; /* of the value in ps_config_t */
} ps_key_t;

/* The row of an id below PS_KEY_COUNT. */
const ps_key_t *ps_config_key(ps_key_id_t id);
#define PS_KEY_ENV_SIZE 64
/* The name of its variable: "PSD_LIMITS_CHUNK_BYTES". Returns ret. */
const char *ps_key_env(const ps_key_t *self, char ret[PS_KEY_ENV_SIZE]);
/* A value as typed, for an error message: in quotes, cut to fit, control
 * characters as '?'. Returns ret. */
const char *ps_config_show(const char *text, char *ret, size_t size);
/* What a value of this key may be: "1 .. 256 threads". Appended; false: no
 * memory. */
PSD_MUST_CHECK bool ps_key_allowed(const ps_key_t *key, ps_buffer_t *buffer);

/* The defaults. Errors: PSD_NOMEM. */
PSD_MUST_CHECK psd_status_t ps_config_init(ps_config_t *self, psd_error_t *err);
/* Frees what it holds and zeroes it; fits PSD_AUTO. */
void ps_config_done(ps_config_t *self);

/* Sets one value from its text (lists: items separated by commas). origin is
 * copied. Errors: PSD_CONFIG naming place, key, value and the allowed
 * values; PSD_NOMEM. An error changes nothing. */
PSD_MUST_CHECK psd_status_t ps_config_set(ps_config_t *self, ps_key_id_t id, const char *text,
                                          const ps_origin_t *origin, psd_error_t *err);
/* "psd.yaml:12", "PSD_SHARDS", "--shards" or "default". Returns ret. */
const char *ps_origin_print(const ps_origin_t *self, const ps_key_t *key, char *ret, size_t size);

/* Does the variable name a key? */
bool ps_config_reads_env(const char *name);
/* Does it name a section of keys (PSD_LIMITS_…), or is it one or two typing
 * errors away from a key? */
bool ps_config_near_env(const char *name);
/* Takes every PSD_… variable that names a key. Errors: PSD_CONFIG, PSD_NOMEM.
 */
PSD_MUST_CHECK psd_status_t ps_config_take_env(ps_config_t *self, psd_error_t *err);
/* The rules between values: sizes that must fit into each other, plaintext
 * beyond loopback. Errors: PSD_CONFIG. */
PSD_MUST_CHECK psd_status_t ps_config_check(const ps_config_t *self, psd_error_t *err);

/* Of those, the rules between sizes and times alone. */
PSD_MUST_CHECK psd_status_t ps_config_check_numbers(const ps_config_t *self, psd_error_t *err);

/* Numbers, sizes and switches: takes all of `from`; one of them. */
void ps_config_take_numbers(ps_config_t *self, const ps_config_t *from);
uint64_t ps_config_number(const ps_config_t *self, ps_key_id_t id);
void ps_config_set_number(ps_config_t *self, ps_key_id_t id, uint64_t value);

/* Takes the values of `from` that may change while psd runs. ret_stuck gets the
 * keys whose new value needs a restart; returns their number. */
size_t ps_config_take_reloadable(ps_config_t *self, const ps_config_t *from,
                                 ps_key_id_t ret_stuck[PS_KEY_COUNT]);

/* A YAML file that gives exactly these values, each with its origin in a
 * comment. Appended; false: no memory. */
PSD_MUST_CHECK bool ps_config_print(const ps_config_t *self, ps_buffer_t *buffer);
/* One value as it would be typed. Appended; false: no memory. */
PSD_MUST_CHECK bool ps_config_value_print(const ps_config_t *self, ps_key_id_t id,
                                          ps_buffer_t *buffer);
#endif
