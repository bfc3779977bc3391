/* Preloaded (LD_PRELOAD): every file was changed at one time, as on a file system that rounds times and within one tick
   of it, and all have one inode, as on one that uses those of replaced files again at once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/stat.h>

static void seconds(struct timespec *time) {
    time->tv_sec = 1000000000;
    time->tv_nsec = 0;
}

static int rounded(int result, struct stat *status) {
    if (result == 0) {
        seconds(&status->st_mtim);
        seconds(&status->st_ctim);
        if (S_ISREG(status->st_mode)) status->st_ino = 1;
    }
    return result;
}

#define NEXT(type, name) ((type)dlsym(RTLD_NEXT, name))
#define WRAP(name)                                                                      \
    int name(const char *path, struct stat *status) {                                   \
        return rounded(NEXT(int (*)(const char *, struct stat *), #name)(path, status), status); \
    }
#define WRAP_DESCRIPTOR(name)                                                           \
    int name(int file, struct stat *status) {                                           \
        return rounded(NEXT(int (*)(int, struct stat *), #name)(file, status), status); \
    }
#define WRAP_AT(name)                                                                   \
    int name(int at, const char *path, struct stat *status, int flags) {                \
        return rounded(NEXT(int (*)(int, const char *, struct stat *, int), #name)(at, path, status, flags), status); \
    }

WRAP(stat)
WRAP(lstat)
WRAP_DESCRIPTOR(fstat)
WRAP_AT(fstatat)

/* struct stat64 is struct stat on 64-bit systems. */
int stat64(const char *, struct stat64 *) __attribute__((alias("stat")));
int lstat64(const char *, struct stat64 *) __attribute__((alias("lstat")));
int fstat64(int, struct stat64 *) __attribute__((alias("fstat")));
int fstatat64(int, const char *, struct stat64 *, int) __attribute__((alias("fstatat")));

int statx(int at, const char *path, int flags, unsigned mask, struct statx *status) {
    int result = NEXT(int (*)(int, const char *, int, unsigned, struct statx *), "statx")(at, path, flags, mask, status);
    if (result == 0) {
        status->stx_mtime.tv_sec = status->stx_ctime.tv_sec = 1000000000;
        status->stx_mtime.tv_nsec = status->stx_ctime.tv_nsec = 0;
        if (S_ISREG(status->stx_mode)) status->stx_ino = 1;
    }
    return result;
}
