/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps SQLite's database files; all other files are the system's. */
#include "storage/disk/page_sums.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"
#include "base/cursor.h"
#include "base/hash.h"

#define VFS_NAME "psd"
#define PAGE_MIN 512
#define PAGE_SIZE_AT 16 /* in the head of a database: u16, big-endian */
#define RESERVED_AT 20  /* u8 */
#define PAGES_AT 28     /* u32, big-endian */
#define HEAD_SIZE 100
#define WHERE                                                                    \
    0x70735347              /* our own sqlite3_file_control: int64_t, damaged_at \
                             */
#define HAS_SUMS 0x70735348 /* int */

typedef struct sums_file {
    sqlite3_file base;
    sqlite3_file *real; /* after this struct */
    bool on;            /* pages have sums */
    int64_t damaged_at; /* -1 */
} sums_file_t;

static sqlite3_vfs sums_vfs; /* set once */
static sqlite3_vfs *real_vfs;
static bool is_registered;
static pthread_once_t once = PTHREAD_ONCE_INIT; /* several servers may start at once */

static sums_file_t *sums_of(sqlite3_file *file)
{
    return (sums_file_t *)file;
}

static sqlite3_file *real_of(sqlite3_file *file)
{
    return sums_of(file)->real;
}

/* ---- pages ---- */

static uint64_t sum_of(const uint8_t *page, size_t size, uint64_t place)
{
    return ps_hash_bytes(page, size - PS_PAGE_SUM_SIZE, place);
}

static bool is_zero(const uint8_t *page, size_t size)
{
    return page[0] == 0 && memcmp(page, page + 1, size - 1) == 0;
}

static bool is_page(int size, sqlite3_int64 place)
{
    return size >= PAGE_MIN && (size & (size - 1)) == 0 && place % size == 0;
}

/* 0: the head says nothing that could be. */
static size_t page_size(const uint8_t *bytes, size_t size)
{
    size_t page = size < HEAD_SIZE ? 0 : (size_t)bytes[PAGE_SIZE_AT] << 8 | bytes[PAGE_SIZE_AT + 1];

    page = page == 1 ? 65536 : page; /* which has no room for itself */
    return page < PAGE_MIN || (page & (page - 1)) != 0 ? 0 : page;
}

void ps_page_sums_put(uint8_t *bytes, size_t size)
{
    size_t page = page_size(bytes, size);

    if (page == 0 || bytes[RESERVED_AT] != PS_PAGE_SUM_SIZE) {
        return;
    }
    for (size_t at = 0; at + page <= size; at += page) {
        if (!is_zero(bytes + at, page)) {
            ps_store_u64(bytes + at + page - PS_PAGE_SUM_SIZE, sum_of(bytes + at, page, at));
        }
    }
}

/* ---- a database's file ---- */

static int file_close(sqlite3_file *file)
{
    return real_of(file)->pMethods->xClose(real_of(file));
}

static int file_read(sqlite3_file *file, void *bytes, int size, sqlite3_int64 place)
{
    sums_file_t *self = sums_of(file);
    const uint8_t *page = bytes;
    int code = self->real->pMethods->xRead(self->real, bytes, size, place);

    if (code != SQLITE_OK) {
        return code;
    }
    if (place == 0 && size >= HEAD_SIZE) {
        self->on = page[RESERVED_AT] == PS_PAGE_SUM_SIZE;
    }
    if (self->on && is_page(size, place) && !is_zero(page, (size_t)size) &&
        sum_of(page, (size_t)size, (uint64_t)place) !=
            ps_load_u64(page + size - PS_PAGE_SUM_SIZE)) {
        self->damaged_at = self->damaged_at < 0 ? place : self->damaged_at;
        return SQLITE_IOERR_DATA;
    }
    return SQLITE_OK;
}

/* No other code uses the reserved bytes, so they are written in place. */
static int file_write(sqlite3_file *file, const void *bytes, int size, sqlite3_int64 place)
{
    sums_file_t *self = sums_of(file);
    uint8_t *page = (uint8_t *)(uintptr_t)bytes;

    if (place == 0 && size >= HEAD_SIZE) {
        self->on = page[RESERVED_AT] == PS_PAGE_SUM_SIZE;
    }
    if (self->on && is_page(size, place)) {
        ps_store_u64(page + size - PS_PAGE_SUM_SIZE, sum_of(page, (size_t)size, (uint64_t)place));
    }
    return self->real->pMethods->xWrite(self->real, bytes, size, place);
}

static int file_truncate(sqlite3_file *file, sqlite3_int64 size)
{
    return real_of(file)->pMethods->xTruncate(real_of(file), size);
}

static int file_sync(sqlite3_file *file, int flags)
{
    return real_of(file)->pMethods->xSync(real_of(file), flags);
}

static int file_size(sqlite3_file *file, sqlite3_int64 *ret_size)
{
    return real_of(file)->pMethods->xFileSize(real_of(file), ret_size);
}

static int file_lock(sqlite3_file *file, int kind)
{
    return real_of(file)->pMethods->xLock(real_of(file), kind);
}

static int file_unlock(sqlite3_file *file, int kind)
{
    return real_of(file)->pMethods->xUnlock(real_of(file), kind);
}

static int file_check_lock(sqlite3_file *file, int *ret_locked)
{
    return real_of(file)->pMethods->xCheckReservedLock(real_of(file), ret_locked);
}

static int file_control(sqlite3_file *file, int what, void *argument)
{
    if (what == WHERE) {
        *(int64_t *)argument = sums_of(file)->damaged_at;
        return SQLITE_OK;
    }
    if (what == HAS_SUMS) {
        *(int *)argument = sums_of(file)->on;
        return SQLITE_OK;
    }
    return real_of(file)->pMethods->xFileControl(real_of(file), what, argument);
}

static int file_sector(sqlite3_file *file)
{
    return real_of(file)->pMethods->xSectorSize(real_of(file));
}

static int file_traits(sqlite3_file *file)
{
    return real_of(file)->pMethods->xDeviceCharacteristics(real_of(file));
}

static int file_shm_map(sqlite3_file *file, int region, int size, int extend,
                        void volatile **ret_memory)
{
    return real_of(file)->pMethods->xShmMap(real_of(file), region, size, extend, ret_memory);
}

static int file_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    return real_of(file)->pMethods->xShmLock(real_of(file), offset, n, flags);
}

static void file_shm_barrier(sqlite3_file *file)
{
    real_of(file)->pMethods->xShmBarrier(real_of(file));
}

static int file_shm_unmap(sqlite3_file *file, int remove)
{
    return real_of(file)->pMethods->xShmUnmap(real_of(file), remove);
}

/* Version 2: no mapped pages, whose sums would not be checked. */
static const sqlite3_io_methods methods = {
    .iVersion = 2,
    .xClose = file_close,
    .xRead = file_read,
    .xWrite = file_write,
    .xTruncate = file_truncate,
    .xSync = file_sync,
    .xFileSize = file_size,
    .xLock = file_lock,
    .xUnlock = file_unlock,
    .xCheckReservedLock = file_check_lock,
    .xFileControl = file_control,
    .xSectorSize = file_sector,
    .xDeviceCharacteristics = file_traits,
    .xShmMap = file_shm_map,
    .xShmLock = file_shm_lock,
    .xShmBarrier = file_shm_barrier,
    .xShmUnmap = file_shm_unmap,
};

/* ---- the VFS ---- */

static int open_file(sqlite3_vfs *vfs, sqlite3_filename path, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    sums_file_t *self = (sums_file_t *)file;
    int code = SQLITE_OK;

    (void)vfs;
    if ((flags & SQLITE_OPEN_MAIN_DB) == 0) {
        return real_vfs->xOpen(real_vfs, path, file, flags, ret_flags);
    }
    *self = (sums_file_t){.real = (sqlite3_file *)(self + 1), .damaged_at = -1};
    code = real_vfs->xOpen(real_vfs, path, self->real, flags, ret_flags);
    if (code == SQLITE_OK) {
        self->base.pMethods = &methods;
    }
    return code;
}

static void register_vfs(void)
{
    real_vfs = sqlite3_vfs_find(NULL);
    if (real_vfs == NULL) {
        return;
    }
    sums_vfs = *real_vfs; /* all but opening is the system's */
    sums_vfs.zName = VFS_NAME;
    sums_vfs.szOsFile += (int)sizeof(sums_file_t);
    sums_vfs.pNext = NULL;
    sums_vfs.xOpen = open_file;
    is_registered = sqlite3_vfs_register(&sums_vfs, 0) == SQLITE_OK;
}

const char *ps_page_sums_vfs(void)
{
    (void)pthread_once(&once, register_vfs);
    return is_registered ? VFS_NAME : NULL;
}

bool ps_page_sums_want(sqlite3 *db)
{
    int size = PS_PAGE_SUM_SIZE;

    return sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &size) == SQLITE_OK;
}

bool ps_page_sums_are_there(sqlite3 *db)
{
    int on = 0;

    return sqlite3_file_control(db, "main", HAS_SUMS, &on) == SQLITE_OK && on != 0;
}

/* Bytes of a page, and by the head how many pages there are. */
static int read_head(sqlite3_file *file, size_t *ret_size, uint64_t *ret_n)
{
    uint8_t head[HEAD_SIZE];
    int code = file->pMethods->xRead(file, head, sizeof head, 0);

    if (code == SQLITE_OK) {
        *ret_size = page_size(head, sizeof head);
        *ret_n = (uint64_t)head[PAGES_AT] << 24 | (uint64_t)head[PAGES_AT + 1] << 16 |
                 (uint64_t)head[PAGES_AT + 2] << 8 | head[PAGES_AT + 3];
    }
    return code;
}

int ps_page_sums_check(sqlite3 *db)
{
    sqlite3_file *file = NULL;
    uint8_t *page = NULL;
    size_t size = 0;
    uint64_t n = 0;
    int code = sqlite3_file_control(db, "main", SQLITE_FCNTL_FILE_POINTER, &file);

    if (code == SQLITE_OK) {
        code = read_head(file, &size, &n);
    }
    if (code != SQLITE_OK) {
        return code;
    }
    if (size == 0) {
        return SQLITE_IOERR_DATA;
    }
    page = ps_alloc_raw(1, size);
    if (page == NULL) {
        return SQLITE_NOMEM;
    }
    for (uint64_t i = 0; i < n && code == SQLITE_OK; i++) {
        code = file->pMethods->xRead(file, page, (int)size, (sqlite3_int64)(i * size));
    }
    ps_free(page);
    return code;
}

int64_t ps_page_sums_damaged_at(sqlite3 *db)
{
    int64_t at = -1;

    return sqlite3_file_control(db, "main", WHERE, &at) == SQLITE_OK ? at : -1;
}
