/*
 * Logs what a process does to the files of one folder, in the order in which it does it; power_loss.py reads the log.
 *
 * Preloaded into the process under test. POWER_LOSS_FOLDER is the folder, POWER_LOSS_LOG the log. A record is written
 * with one append, so processes and threads that share a log share its order. A change is logged when it is done,
 * a synchronisation when it begins and when it is done: what was logged before its beginning is on the disk after
 * its end, and nothing else can be relied on.
 *
 * power_loss_kill_at(n) has the process kill itself before its n-th step from then on: a change, or either end of a
 * synchronisation.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

struct __attribute__((packed)) header {
    char kind; /* O open, W write, T truncate, s and S begin and end of a synchronisation, L link, R rename, U unlink */
    int32_t process;
    uint64_t file; /* the file's number, 0 for the folder */
    int64_t offset;
    uint32_t length; /* of the data that follow: what is written, or names, each ended by a zero */
};

static char folder[PATH_MAX];
static size_t folder_length;
static int log_file = -1;
static long kill_at = -1;
static long steps = 0;

static int (*real_open)(const char *, int, ...);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_link)(const char *, const char *);
static int (*real_rename)(const char *, const char *);
static int (*real_unlink)(const char *);

__attribute__((constructor)) static void start(void) {
    real_open = dlsym(RTLD_NEXT, "open");
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_link = dlsym(RTLD_NEXT, "link");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    const char *watched = getenv("POWER_LOSS_FOLDER");
    const char *log = getenv("POWER_LOSS_LOG");
    if (watched == NULL || log == NULL || strlen(watched) >= sizeof folder)
        return;
    strcpy(folder, watched);
    folder_length = strlen(folder);
    log_file = real_open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

void power_loss_kill_at(long step) {
    steps = 0;
    kill_at = step;
}

/* The name within the folder: "" for the folder itself, NULL for what is elsewhere. */
static const char *name_in(const char *path) {
    if (log_file < 0 || strncmp(path, folder, folder_length) != 0)
        return NULL;
    if (path[folder_length] == '\0')
        return "";
    return path[folder_length] == '/' ? path + folder_length + 1 : NULL;
}

/* The same for an open file, and its number; a file that lost its name has the name that it lost. */
static int watched(int descriptor, uint64_t *number) {
    char link[64], path[PATH_MAX];
    struct stat found;
    if (log_file < 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0)
        return 0;
    path[length] = '\0';
    const char *name = name_in(path);
    if (name == NULL || fstat(descriptor, &found) != 0)
        return 0;
    *number = *name == '\0' ? 0 : found.st_ino;
    return 1;
}

static void step(void) {
    if (__atomic_add_fetch(&steps, 1, __ATOMIC_SEQ_CST) == kill_at)
        kill(getpid(), SIGKILL);
}

static void record(char kind, uint64_t file, int64_t offset, const void *data, size_t length) {
    struct header header = {kind, getpid(), file, offset, (uint32_t)length};
    struct iovec parts[2] = {{&header, sizeof header}, {(void *)data, length}};
    if (writev(log_file, parts, 2) != (ssize_t)(sizeof header + length))
        abort();
}

/* Names are changed and logged as one, so that two processes can't log their changes in the wrong order. */
static void lock_names(int operation) {
    while (flock(log_file, operation) != 0)
        ;
}

static void record_names(char kind, const char *first, const char *second) {
    char names[2 * PATH_MAX];
    size_t length = strlen(first) + 1;
    memcpy(names, first, length);
    if (second != NULL) {
        memcpy(names + length, second, strlen(second) + 1);
        length += strlen(second) + 1;
    }
    record(kind, 0, 0, names, length);
}

int open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
    va_end(arguments);
    const char *name = name_in(path);
    if (name == NULL || *name == '\0')
        return real_open(path, flags, mode);
    if ((flags & O_CREAT) != 0)
        step();
    lock_names(LOCK_EX);
    int descriptor = real_open(path, flags, mode);
    int error = errno;
    uint64_t number;
    if (descriptor >= 0 && watched(descriptor, &number)) {
        record('O', number, 0, name, strlen(name) + 1);
        if ((flags & O_TRUNC) != 0)
            record('T', number, 0, NULL, 0);
    }
    lock_names(LOCK_UN);
    errno = error;
    return descriptor;
}

int open64(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode = (flags & O_CREAT) != 0 ? va_arg(arguments, int) : 0;
    va_end(arguments);
    return open(path, flags, mode);
}

ssize_t write(int descriptor, const void *data, size_t length) {
    uint64_t number;
    if (descriptor == log_file || !watched(descriptor, &number))
        return real_write(descriptor, data, length);
    step();
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    ssize_t done = real_write(descriptor, data, length);
    if (done > 0)
        record('W', number, offset, data, (size_t)done);
    return done;
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
    uint64_t number;
    if (!watched(descriptor, &number))
        return real_pwrite(descriptor, data, length, offset);
    step();
    ssize_t done = real_pwrite(descriptor, data, length, offset);
    if (done > 0)
        record('W', number, offset, data, (size_t)done);
    return done;
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
    return pwrite(descriptor, data, length, (off_t)offset);
}

int ftruncate(int descriptor, off_t length) {
    uint64_t number;
    if (!watched(descriptor, &number))
        return real_ftruncate(descriptor, length);
    step();
    int failed = real_ftruncate(descriptor, length);
    if (!failed)
        record('T', number, length, NULL, 0);
    return failed;
}

int ftruncate64(int descriptor, off64_t length) {
    return ftruncate(descriptor, (off_t)length);
}

static int synchronise(int descriptor, int (*real)(int)) {
    uint64_t number;
    if (!watched(descriptor, &number))
        return real(descriptor);
    step();
    record('s', number, 0, NULL, 0);
    int failed = real(descriptor);
    step();
    if (!failed)
        record('S', number, 0, NULL, 0);
    return failed;
}

int fsync(int descriptor) {
    return synchronise(descriptor, real_fsync);
}

int fdatasync(int descriptor) {
    return synchronise(descriptor, real_fdatasync);
}

int link(const char *from, const char *to) {
    const char *first = name_in(from), *second = name_in(to);
    if (first == NULL || second == NULL)
        return real_link(from, to);
    step();
    lock_names(LOCK_EX);
    int failed = real_link(from, to);
    int error = errno;
    if (!failed)
        record_names('L', first, second);
    lock_names(LOCK_UN);
    errno = error;
    return failed;
}

int rename(const char *from, const char *to) {
    const char *first = name_in(from), *second = name_in(to);
    if (first == NULL || second == NULL)
        return real_rename(from, to);
    step();
    lock_names(LOCK_EX);
    int failed = real_rename(from, to);
    int error = errno;
    if (!failed)
        record_names('R', first, second);
    lock_names(LOCK_UN);
    errno = error;
    return failed;
}

int unlink(const char *path) {
    const char *name = name_in(path);
    if (name == NULL)
        return real_unlink(path);
    step();
    lock_names(LOCK_EX);
    int failed = real_unlink(path);
    int error = errno;
    if (!failed)
        record_names('U', name, NULL);
    lock_names(LOCK_UN);
    errno = error;
    return failed;
}
