/* Databases in kiln's place: LMDB and SQLite in WAL mode, each set up as its manual recommends for
 * this use. Without their headers they cannot be opened. */
#include "bench/rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_LMDB
#include <lmdb.h>

typedef struct lmdb {
    MDB_env *env;
    MDB_dbi table;
} lmdb;

static void lmdb_close(void *self)
{
    lmdb *db = self;
    mdb_env_close(db->env);
    free(db);
}

static void *lmdb_open(const char *root, bool durable)
{
    lmdb *db = calloc(1, sizeof(*db));
    MDB_txn *txn = NULL;
    if (db == NULL || mdb_env_create(&db->env) != 0) {
        free(db);
        return NULL;
    }
    (void)mdb_env_set_mapsize(db->env, (size_t)1 << 31);
    if (mdb_env_open(db->env, root, durable ? 0 : MDB_NOSYNC, 0600) != 0 ||
        mdb_txn_begin(db->env, NULL, 0, &txn) != 0 ||
        mdb_dbi_open(txn, NULL, MDB_CREATE, &db->table) != 0 || mdb_txn_commit(txn) != 0) {
        lmdb_close(db);
        return NULL;
    }
    return db;
}

static bool lmdb_put(void *self, uint32_t key, const void *data, size_t size)
{
    lmdb *db = self;
    MDB_txn *txn = NULL;
    MDB_val name = {sizeof(key), &key};
    MDB_val value = {size, (void *)(uintptr_t)data};
    if (mdb_txn_begin(db->env, NULL, 0, &txn) != 0) {
        return false;
    }
    if (mdb_put(txn, db->table, &name, &value, 0) != 0) {
        mdb_txn_abort(txn);
        return false;
    }
    return mdb_txn_commit(txn) == 0;
}

static size_t lmdb_get(void *self, uint32_t key, void *data, size_t room)
{
    lmdb *db = self;
    MDB_txn *txn = NULL;
    MDB_val name = {sizeof(key), &key};
    MDB_val value = {0, NULL};
    if (mdb_txn_begin(db->env, NULL, MDB_RDONLY, &txn) != 0) {
        return 0;
    }
    size_t size = 0;
    if (mdb_get(txn, db->table, &name, &value) == 0 && value.mv_size <= room) {
        memcpy(data, value.mv_data, value.mv_size); /* it must outlive the transaction */
        size = value.mv_size;
    }
    mdb_txn_abort(txn);
    return size;
}

const rival_ops rival_lmdb = {"LMDB", lmdb_open, lmdb_put, lmdb_get, lmdb_close};
#else
static void *no_lmdb(const char *root, bool durable)
{
    (void)root;
    (void)durable;
    return NULL;
}
const rival_ops rival_lmdb = {.name = "LMDB", .open = no_lmdb};
#endif

#ifdef HAVE_SQLITE
#include <sqlite3.h>

typedef struct sqlite {
    sqlite3 *db;
    sqlite3_stmt *put, *get;
} sqlite;

static void sqlite_close(void *self)
{
    sqlite *s = self;
    (void)sqlite3_finalize(s->put);
    (void)sqlite3_finalize(s->get);
    (void)sqlite3_close(s->db);
    free(s);
}

static void *sqlite_open(const char *root, bool durable)
{
    char path[600];
    char setup[256];
    sqlite *s = calloc(1, sizeof(*s));
    if (s == NULL) {
        return NULL;
    }
    (void)snprintf(path, sizeof(path), "%s/db", root);
    (void)snprintf(setup, sizeof(setup),
                   "PRAGMA journal_mode=WAL; PRAGMA synchronous=%s;"
                   "CREATE TABLE IF NOT EXISTS t(k INTEGER PRIMARY KEY, v BLOB)",
                   durable ? "FULL" : "OFF");
    if (sqlite3_open(path, &s->db) != SQLITE_OK ||
        sqlite3_exec(s->db, setup, NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(s->db, "INSERT OR REPLACE INTO t VALUES(?,?)", -1, &s->put, NULL) !=
            SQLITE_OK ||
        sqlite3_prepare_v2(s->db, "SELECT v FROM t WHERE k=?", -1, &s->get, NULL) != SQLITE_OK) {
        sqlite_close(s);
        return NULL;
    }
    return s;
}

static bool sqlite_put(void *self, uint32_t key, const void *data, size_t size)
{
    sqlite *s = self;
    (void)sqlite3_bind_int64(s->put, 1, key);
    (void)sqlite3_bind_blob(s->put, 2, data, (int)size, SQLITE_STATIC);
    const bool good = sqlite3_step(s->put) == SQLITE_DONE;
    return sqlite3_reset(s->put) == SQLITE_OK && good;
}

static size_t sqlite_get(void *self, uint32_t key, void *data, size_t room)
{
    sqlite *s = self;
    size_t size = 0;
    (void)sqlite3_bind_int64(s->get, 1, key);
    if (sqlite3_step(s->get) == SQLITE_ROW) {
        const void *bytes = sqlite3_column_blob(s->get, 0);
        const int length = sqlite3_column_bytes(s->get, 0);
        if (bytes != NULL && length > 0 && (size_t)length <= room) {
            memcpy(data, bytes, (size_t)length);
            size = (size_t)length;
        }
    }
    (void)sqlite3_reset(s->get);
    return size;
}

const rival_ops rival_sqlite = {"SQLite WAL", sqlite_open, sqlite_put, sqlite_get, sqlite_close};
#else
static void *no_sqlite(const char *root, bool durable)
{
    (void)root;
    (void)durable;
    return NULL;
}
const rival_ops rival_sqlite = {.name = "SQLite WAL", .open = no_sqlite};
#endif
