/* A disk for one SQLite database that can lose what was not synced, be full, or fail.
 *
 * LD_PRELOAD puts this before libc (Linux, 64 bits). FAULTY_DATABASE names the database; its log,
 * `-wal`, is watched as well. An empty file `DATABASE.NAME` switches a fault on:
 *
 *   disk full       a write that makes a file longer fails with ENOSPC
 *   disk read-only  every write fails with EROFS, as after a remount
 *   fsync fails     a sync fails with EIO
 *   fsync lies      a sync does nothing, and reports success
 *
 * Before each write, `FILE.undo` gets a record: three numbers (the offset, the size of the file, how
 * many bytes are overwritten) and those bytes. A sync empties it, whichever process made the writes.
 * For a power cut, all processes are killed, and `take_back` is called for each file. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* How much longer a sync takes than on this machine's disk: a kill then often comes before one. */
#define SYNC_MICROSECONDS 6000

static int fails(int error)
{
    errno = error;
    return -1;
}

static int is_on(const char *fault)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s.%s", getenv("FAULTY_DATABASE"), fault);
    return access(path, F_OK) == 0;
}

/* Return whether the file is the database or its log, and where its records are. */
static int is_watched(int fd, char undo[PATH_MAX])
{
    const char *database = getenv("FAULTY_DATABASE");
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, undo, PATH_MAX - 8);
    if (database == NULL || length < 0)
        return 0;
    undo[length] = 0;
    size_t common = strlen(database);
    if (strncmp(undo, database, common) || (undo[common] && strcmp(undo + common, "-wal")))
        return 0;
    strcat(undo, ".undo");
    return 1;
}

/* What a record begins with. */
struct head {
    int64_t at, size, overwritten;
};

/* Record what a change of `length` bytes at `at` overwrites. */
static int record(int fd, const char *undo, int64_t at, int64_t length)
{
    struct stat file;
    void *old = malloc(length);
    ssize_t saved = pread64(fd, old, length, at);
    int records = open(undo, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int done = -1;
    if (old && saved >= 0 && records >= 0 && fstat(fd, &file) == 0) {
        struct head head = {at, file.st_size, saved};
        struct iovec parts[] = {{&head, sizeof head}, {old, saved}};
        done = writev(records, parts, 2) < 0 ? -1 : 0;
    }
    close(records);
    free(old);
    return done;
}

ssize_t pwrite64(int fd, const void *data, size_t length, off64_t at)
{
    char undo[PATH_MAX];
    struct stat file;
    if (is_watched(fd, undo)) {
        if (is_on("disk read-only"))
            return fails(EROFS);
        if (is_on("disk full") && fstat(fd, &file) == 0 && at + (off64_t)length > file.st_size)
            return fails(ENOSPC);
        if (record(fd, undo, at, length))
            return fails(EIO);
    }
    return syscall(SYS_pwrite64, fd, data, length, at);
}

int ftruncate64(int fd, off64_t size)
{
    char undo[PATH_MAX];
    struct stat file;
    if (is_watched(fd, undo) && fstat(fd, &file) == 0) {
        if (is_on("disk read-only"))
            return fails(EROFS);
        off64_t first = size < file.st_size ? size : file.st_size;
        if (record(fd, undo, first, llabs(size - file.st_size)))
            return fails(EIO);
    }
    return syscall(SYS_ftruncate, fd, size);
}

static int sync_by(long call, int fd)
{
    char undo[PATH_MAX];
    int watched = is_watched(fd, undo);
    if (watched && is_on("fsync fails"))
        return fails(EIO);
    if (watched && is_on("fsync lies"))
        return 0;
    if (watched)
        usleep(SYNC_MICROSECONDS);
    int done = syscall(call, fd);
    if (watched && done == 0 && truncate(undo, 0) && errno != ENOENT)
        return fails(EIO);
    return done;
}

int fsync(int fd) { return sync_by(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_by(SYS_fdatasync, fd); }
ssize_t pwrite(int, const void *, size_t, off_t) __attribute__((alias("pwrite64")));
int ftruncate(int, off_t) __attribute__((alias("ftruncate64")));

/* Undo the writes from this record on, the last one first; return how many, or -1. */
static int take_back_from(int records, off64_t place, int fd)
{
    struct head head;
    if (pread64(records, &head, sizeof head, place) != sizeof head)
        return 0;
    place += sizeof head;
    char *old = malloc(head.overwritten + 1);
    int done = -1;
    if (old && pread64(records, old, head.overwritten, place) != head.overwritten)
        done = 0; /* A kill cut the record off, so the write was not made. */
    else if (old) {
        int later = take_back_from(records, place + head.overwritten, fd);
        if (later >= 0
            && syscall(SYS_pwrite64, fd, old, head.overwritten, head.at) == head.overwritten
            && syscall(SYS_ftruncate, fd, head.size) == 0)
            done = later + 1;
    }
    free(old);
    return done;
}

/* Undo what was written to a file, and not synced; return how many writes, or -1. */
int take_back(const char *path)
{
    char undo[PATH_MAX];
    snprintf(undo, sizeof undo, "%s.undo", path);
    int records = open(undo, O_RDWR | O_CLOEXEC);
    if (records < 0)
        return 0;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    int writes = take_back_from(records, 0, fd);
    if (writes >= 0 && syscall(SYS_ftruncate, records, 0))
        writes = -1;
    close(fd);
    close(records);
    return writes;
}
