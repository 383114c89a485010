/* Names, counts and interrupts the calls of a process that change what outlives it.

   LD_PRELOAD of each process of a run. The harness (shim.py) maps the same file: which
   call is to be interrupted, how, and whether that happened. A call's site is

     role syscall target [message] [@place]

   the process's part, what is called, on what, what a message says first, and which
   Python code is behind it. docs/decisions/0104-crash-at-call-sites.md. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

enum { SITE = 512, TEXT = 160, DESCRIPTORS = 4096, SEEN = 512 };
enum { NOTHING, KILL_BEFORE, KILL_AFTER, FAIL };

struct order { /* as shim.py packs it */
    char site[SITE];
    uint32_t occurrence, action;
    int32_t error;
    uint32_t group;           /* kill all of the instance, not the process alone */
    int32_t spared;           /* the process group of who asks */
    _Atomic uint32_t armed;   /* count from now on */
    _Atomic uint32_t seen;    /* calls of the site */
    _Atomic uint32_t done;
    int32_t pid;              /* who was interrupted */
};

struct stream {
    int kind;     /* of what is at the other end */
    int untagged; /* its next message has no byte in front of its length */
    int64_t rest; /* bytes of a message that was begun */
};
enum { UNKNOWN, POSTGRES, SQL, REPLICATION, KAFKA };

static struct order *order;
static int report = -1;
static char role[32], folder[PATH_MAX], root[PATH_MAX];
static int postgres_port, kafka_port;
static struct stream streams[DESCRIPTORS];
static __thread int inside;

/* --- who this is ------------------------------------------------------------ */

static void find_role(void) {
    char line[4096];
    int file = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY);
    ssize_t length = file < 0 ? 0 : syscall(SYS_read, file, line, sizeof line - 1);
    syscall(SYS_close, file);
    for (ssize_t i = 0; i < length; i++)
        if (!line[i]) line[i] = ' ';
    line[length > 0 ? length : 0] = 0;
    const char *found = "";
    if (strstr(line, "walstream.service.worker_main")) found = "worker";
    else if (strstr(line, "walstream.spark.driver")) found = "driver";
    else if (strstr(line, "-m consumer ")) found = "consumer";
    else if (strstr(line, "/walstream run ")) found = "supervisor";
    strcpy(role, found);
}

static void attach(void) {
    const char *shared = getenv("CALLSITES_ORDER"), *told = getenv("CALLSITES_REPORT");
    const char *in = getenv("CALLSITES_FOLDER"), *code = getenv("CALLSITES_ROOT");
    if (!*role || !shared || !told || !in || !code) return;
    snprintf(folder, sizeof folder, "%s/", in);
    snprintf(root, sizeof root, "%s/", code);
    postgres_port = atoi(getenv("CALLSITES_POSTGRES") ?: "0");
    kafka_port = atoi(getenv("CALLSITES_KAFKA") ?: "0");
    int file = syscall(SYS_openat, AT_FDCWD, shared, O_RDWR | O_CLOEXEC);
    if (file < 0) return;
    void *at = mmap(NULL, sizeof *order, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    report = syscall(SYS_openat, AT_FDCWD, told, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (at == MAP_FAILED || report < 0) return;
    order = at;
}

__attribute__((constructor)) static void begin(void) {
    find_role();
    attach();
}

/* of a process that became what it is by fork: fork_server.py */
void callsites_begin(const char *name) {
    snprintf(role, sizeof role, "%s", name);
    memset(streams, 0, sizeof streams);
    order = NULL;
    attach();
}

/* --- the Python code behind a call ------------------------------------------ */

typedef struct object object;
static object *(*thread_state)(void), *(*current_state)(void), *(*frame_of)(object *);
static object *(*code_of)(object *), *(*back)(object *);
static object *(*attribute)(object *, const char *);
static const char *(*text_of)(object *);
static int (*take_lock)(void), (*is_initialised)(void);
static void (*give_lock)(int), (*release)(object *);
static void (*fetch)(object **, object **, object **);
static void (*restore)(object *, object *, object *);

static int has_python(void) {
    static int known = -1;
    if (known >= 0) return known && is_initialised();
    struct { void *at; const char *name; } wanted[] = {
        {&thread_state, "PyGILState_GetThisThreadState"},
        {&current_state, "PyThreadState_Get"},
        {&frame_of, "PyThreadState_GetFrame"},
        {&code_of, "PyFrame_GetCode"},
        {&back, "PyFrame_GetBack"},
        {&attribute, "PyObject_GetAttrString"},
        {&text_of, "PyUnicode_AsUTF8"},
        {&take_lock, "PyGILState_Ensure"},
        {&give_lock, "PyGILState_Release"},
        {&is_initialised, "Py_IsInitialized"},
        {&release, "Py_DecRef"},
        {&fetch, "PyErr_Fetch"},
        {&restore, "PyErr_Restore"},
    };
    int all = 1;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        all &= (*(void **)wanted[i].at = dlsym(RTLD_DEFAULT, wanted[i].name)) != NULL;
    known = all;
    return known && is_initialised();
}

/* below them everybody writes: who called tells more */
static int is_low(const char *file) {
    static const char *const low[] = {
        "walstream/state/", "walstream/telemetry/", "walstream/postgres/connection.py",
        "walstream/postgres/connection_attempt.py",
        "walstream/pipeline/state_document.py", "walstream/spark/driver/transport.py",
        "walstream/spark/parent_death.py", "consumer/state/session.py", NULL};
    for (int i = 0; low[i]; i++)
        if (!strncmp(file, low[i], strlen(low[i]))) return 1;
    return 0;
}

static int name_frame(object *frame, char *out, size_t room) {
    object *code = code_of(frame), *file = attribute(code, "co_filename");
    object *name = attribute(code, "co_qualname");
    const char *path = file ? text_of(file) : NULL, *called = name ? text_of(name) : NULL;
    int kind = 0; /* 1 ours and low, 2 ours */
    if (path && called && !strncmp(path, root, strlen(root))) {
        path += strlen(root);
        if (!strncmp(path, "walstream/", 10) || !strncmp(path, "consumer/", 9)) {
            kind = is_low(path) ? 1 : 2;
            if (kind == 2 || !*out) snprintf(out, room, "%s:%s", path, called);
        }
    }
    if (file) release(file);
    if (name) release(name);
    release(code);
    return kind;
}

static void find_place(char *out, size_t room) {
    *out = 0;
    if (!has_python() || !thread_state()) return;
    object *type, *value, *trace;
    int lock = take_lock();
    fetch(&type, &value, &trace);
    object *frame = frame_of(current_state());
    while (frame && name_frame(frame, out, room) != 2) {
        object *next = back(frame);
        release(frame);
        frame = next;
    }
    if (frame) release(frame);
    restore(type, value, trace);
    give_lock(lock);
}

/* --- what a call is done to ------------------------------------------------- */

static int linked(const char *link, char *out, size_t room) {
    ssize_t length = readlink(link, out, room - 1);
    out[length > 0 ? length : 0] = 0;
    return length > 0;
}

/* a path in the run's folder; what differs from run to run in it is a # */
static int below(const char *path, char *out, size_t room) {
    size_t length = strlen(folder), at = 0;
    if (strncmp(path, folder, length)) return 0;
    for (path += length; *path && at + 1 < room;) {
        size_t digits = strspn(path, "0123456789"), hex = strspn(path, "0123456789abcdef");
        size_t varies = hex >= 8 ? hex : digits;
        out[at++] = varies ? '#' : *path;
        path += varies ? varies : 1;
    }
    out[at] = 0;
    return 1;
}

static int path_target(int base, const char *path, char *out, size_t room) {
    char whole[PATH_MAX * 2], parent[PATH_MAX], real[PATH_MAX * 2], link[64];
    if (*path == '/') {
        snprintf(whole, sizeof whole, "%s", path);
    } else {
        if (base == AT_FDCWD) strcpy(link, "/proc/self/cwd");
        else snprintf(link, sizeof link, "/proc/self/fd/%d", base);
        if (!linked(link, parent, sizeof parent)) return 0;
        snprintf(whole, sizeof whole, "%s/%s", parent, path);
    }
    char *last = strrchr(whole, '/');
    if (!last || last == whole) return 0;
    *last = 0;
    if (!realpath(whole, real)) strcpy(real, whole); /* nothing is there */
    snprintf(whole, sizeof whole, "%.4000s/%.255s", real, last + 1);
    return below(whole, out, room);
}

/* a pipe whose other end this process has wakes it, and tells nobody anything */
static int is_own_pipe(int fd, ino_t inode) {
    struct stat other;
    for (int i = 3; i < 512; i++)
        if (i != fd && !fstat(i, &other) && S_ISFIFO(other.st_mode) &&
            other.st_ino == inode && (fcntl(i, F_GETFL) & O_ACCMODE) == O_RDONLY)
            return 1;
    return 0;
}

static int port_of(const struct sockaddr *address) {
    if (address->sa_family == AF_INET)
        return ntohs(((const struct sockaddr_in *)address)->sin_port);
    if (address->sa_family == AF_INET6)
        return ntohs(((const struct sockaddr_in6 *)address)->sin6_port);
    return 0;
}

static int end_of(const struct sockaddr *address) {
    int port = port_of(address);
    if (!port) return UNKNOWN;
    return port == postgres_port ? POSTGRES : port == kafka_port ? KAFKA : UNKNOWN;
}

static int socket_target(int fd, char *out, size_t room) {
    struct sockaddr_storage address = {0};
    socklen_t length = sizeof address;
    if (getpeername(fd, (struct sockaddr *)&address, &length)) return 0;
    if (address.ss_family == AF_UNIX) {
        struct sockaddr_un *name = (struct sockaddr_un *)&address;
        if (fd < DESCRIPTORS) streams[fd] = (struct stream){0};
        if (length <= sizeof(sa_family_t) || !*name->sun_path) {
            length = sizeof address;
            memset(&address, 0, sizeof address);
            if (getsockname(fd, (struct sockaddr *)&address, &length)) return 0;
        }
        if (!*name->sun_path) return 0; /* a pair, within the process */
        const char *last = strrchr(name->sun_path, '/');
        snprintf(out, room, "%s", last ? last + 1 : name->sun_path);
        return 1;
    }
    if (fd >= DESCRIPTORS || !port_of((struct sockaddr *)&address)) return 0;
    if (!streams[fd].kind) streams[fd].kind = end_of((struct sockaddr *)&address);
    static const char *const names[] = {"network", "PostgreSQL", "SQL", "replication",
                                        "Kafka"};
    snprintf(out, room, "%s", names[streams[fd].kind]);
    return 1;
}

static int descriptor_target(int fd, char *out, size_t room) {
    struct stat found;
    char link[64], path[PATH_MAX];
    if (fstat(fd, &found)) return 0;
    if (!S_ISSOCK(found.st_mode) && fd < DESCRIPTORS) streams[fd] = (struct stream){0};
    if (S_ISSOCK(found.st_mode)) return socket_target(fd, out, room);
    if (!S_ISREG(found.st_mode) && !S_ISFIFO(found.st_mode)) return 0;
    if (fd == 1 || fd == 2) {
        strcpy(out, fd == 1 ? "stdout" : "stderr");
        return 1;
    }
    if (S_ISFIFO(found.st_mode)) {
        strcpy(out, "pipe");
        return !is_own_pipe(fd, found.st_ino);
    }
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    return linked(link, path, sizeof path) && below(path, out, room);
}

/* --- what a message says ---------------------------------------------------- */

static void word(const char **text, const char *end, char *out, size_t room) {
    size_t at = 0;
    while (*text < end && isspace((unsigned char)**text)) ++*text;
    for (; *text < end && (isalpha((unsigned char)**text) || **text == '_'); ++*text)
        if (at + 1 < room) out[at++] = toupper((unsigned char)**text);
    out[at] = 0;
}

static void name_query(const char *text, const char *end, char *out, size_t room) {
    char verb[40], object[40] = "";
    word(&text, end, verb, sizeof verb);
    if (!strcmp(verb, "CREATE") || !strcmp(verb, "DROP") || !strcmp(verb, "ALTER"))
        word(&text, end, object, sizeof object);
    snprintf(out, room, "%s%s%s", verb, *object ? " " : "", object);
}

static void name_startup(int fd, const unsigned char *at, size_t length, char *out) {
    uint32_t code = length < 8 ? 0 : ntohl(*(const uint32_t *)(at + 4));
    if (code == 80877102) strcpy(out, "CancelRequest");
    else if (code == 80877103) strcpy(out, "SSLRequest");
    else if (code == 80877104) strcpy(out, "GSSENCRequest");
    else {
        strcpy(out, "StartupMessage");
        int is_stream = memmem(at, length, "replication", 12) != NULL;
        streams[fd].kind = is_stream ? REPLICATION : SQL;
        streams[fd].untagged = 1;
    }
}

static void name_postgres(const unsigned char *at, size_t length, char *out, size_t room) {
    const char *text = (const char *)at + 5, *end = (const char *)at + length;
    if (length < 5) strcpy(out, "?");
    else if (*at == 'Q') name_query(text, end, out, room);
    else if (*at == 'P') {
        const char *query = memchr(text, 0, end - text);
        name_query(query ? query + 1 : end, end, out, room);
    } else if (*at == 'd' && length > 5 && *text == 'r') strcpy(out, "status update");
    else snprintf(out, room, "%c", *at);
}

static void name_message(int fd, const struct iovec *parts, int count, char *out,
                         size_t room) {
    unsigned char first[SEEN];
    size_t length = 0;
    *out = 0;
    for (int i = 0; i < count && length < sizeof first; i++) {
        size_t part = parts[i].iov_len;
        if (part > sizeof first - length) part = sizeof first - length;
        memcpy(first + length, parts[i].iov_base, part);
        length += part;
    }
    if (streams[fd].kind != UNKNOWN && streams[fd].rest > 0) strcpy(out, "(goes on)");
    else if (streams[fd].kind == POSTGRES) name_startup(fd, first, length, out);
    else if (streams[fd].kind == KAFKA && length >= 6)
        snprintf(out, room, "api %d", ntohs(*(uint16_t *)(first + 4)));
    else if (streams[fd].kind == SQL || streams[fd].kind == REPLICATION)
        name_postgres(first, length, out, room);
}

/* note how far messages went: of a large one only the first part has a name */
static void went(int fd, const struct iovec *parts, int count, ssize_t sent) {
    if (fd >= DESCRIPTORS || streams[fd].kind <= POSTGRES || sent <= 0) return;
    struct stream *stream = &streams[fd];
    int64_t at = 0;
    for (int i = 0; i < count && sent > 0; i++) {
        const unsigned char *base = parts[i].iov_base;
        int64_t here = (int64_t)parts[i].iov_len < sent ? (int64_t)parts[i].iov_len : sent;
        sent -= here;
        for (at = 0; at < here;) {
            if (stream->rest > 0) {
                int64_t step = stream->rest < here - at ? stream->rest : here - at;
                stream->rest -= step;
                at += step;
                continue;
            }
            int tag = stream->kind == KAFKA || stream->untagged ? 0 : 1;
            if (here - at < tag + 4) break; /* a header in two parts: taken for whole */
            uint32_t size;
            memcpy(&size, base + at + tag, 4);
            /* PostgreSQL's lengths count themselves */
            stream->rest = (int64_t)ntohl(size) + (stream->kind == KAFKA ? 4 : tag);
            stream->untagged = 0;
        }
    }
}

/* --- the interruption ------------------------------------------------------- */

static void end(void) {
    pid_t group = getpgrp();
    order->pid = getpid();
    atomic_store(&order->done, 1);
    if (order->group && group != order->spared && group == getsid(0))
        syscall(SYS_kill, -group, SIGKILL);
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) syscall(SYS_pause);
}

/* Tell the harness of a call; end the process, or say what else is to be done. */
static int reached(const char *called, const char *target, const char *message, int placed) {
    char site[SITE], place[TEXT] = "", line[SITE + 32];
    if (!atomic_load(&order->armed)) return NOTHING;
    if (placed) find_place(place, sizeof place);
    snprintf(site, sizeof site, "%s %s %s%s%s%s%s", role, called, target,
             *message ? " " : "", message, *place ? " @" : "", place);
    int length = snprintf(line, sizeof line, "%d %s\n", getpid(), site);
    syscall(SYS_write, report, line, length);
    if (!order->action || strcmp(site, order->site)) return NOTHING;
    if (atomic_fetch_add(&order->seen, 1) + 1 != order->occurrence) return NOTHING;
    if (order->action == KILL_BEFORE) end();
    if (order->action == FAIL) {
        order->pid = getpid();
        atomic_store(&order->done, 1);
    }
    return order->action;
}

static int at_path(const char *called, int base, const char *path) {
    char target[TEXT];
    int kept = errno, wanted = NOTHING;
    if (order && !inside) {
        inside = 1;
        if (path_target(base, path, target, sizeof target))
            wanted = reached(called, target, "", 1);
        inside = 0;
    }
    errno = kept;
    return wanted;
}

static int at_descriptor(const char *called, int fd, const struct iovec *parts, int count) {
    char target[TEXT], message[TEXT] = "";
    int kept = errno, wanted = NOTHING;
    if (order && !inside && fd >= 0) {
        inside = 1;
        if (descriptor_target(fd, target, sizeof target)) {
            int is_stream = fd < DESCRIPTORS && streams[fd].kind > UNKNOWN;
            if (parts && is_stream)
                name_message(fd, parts, count, message, sizeof message);
            if (is_stream) /* what it is was said by the message */
                socket_target(fd, target, sizeof target);
            wanted = reached(called, target, message, strcmp(target, "stderr") != 0);
        }
        inside = 0;
    }
    errno = kept;
    return wanted;
}

static int fail(int fd) {
    /* a connection that was reset is over for both ends */
    if (fd >= 0 && (order->error == ECONNRESET || order->error == EPIPE))
        shutdown(fd, SHUT_RDWR);
    errno = order->error;
    return -1;
}

#define REAL(result, name, ...)                                       \
    static result (*real)(__VA_ARGS__);                               \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, name)

/* do what is wanted around the call */
#define AROUND(type, reached, fd, call)                               \
    int wanted = (reached);                                           \
    if (wanted == FAIL) return fail(fd);                              \
    type result = (call);                                             \
    if (wanted == KILL_AFTER) end();                                  \
    return result

#define AROUND_SEND(reached, fd, parts, count, call)                  \
    int wanted = (reached);                                           \
    if (wanted == FAIL) return fail(fd);                              \
    ssize_t result = (call);                                          \
    if (wanted == KILL_AFTER) {                                       \
        if (result < 0 && errno == EAGAIN) order->occurrence++;       \
        else end();                                                   \
    }                                                                 \
    went(fd, parts, count, result);                                   \
    return result

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, "write", int, const void *, size_t);
    struct iovec part = {(void *)data, size};
    AROUND_SEND(at_descriptor("write", fd, &part, 1), fd, &part, 1,
                real(fd, data, size));
}

ssize_t writev(int fd, const struct iovec *parts, int count) {
    REAL(ssize_t, "writev", int, const struct iovec *, int);
    AROUND_SEND(at_descriptor("writev", fd, parts, count), fd, parts, count,
                real(fd, parts, count));
}

ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(ssize_t, "send", int, const void *, size_t, int);
    struct iovec part = {(void *)data, size};
    AROUND_SEND(at_descriptor("sendto", fd, &part, 1), fd, &part, 1,
                real(fd, data, size, flags));
}

ssize_t sendto(int fd, const void *data, size_t size, int flags,
               const struct sockaddr *to, socklen_t length) {
    REAL(ssize_t, "sendto", int, const void *, size_t, int, const struct sockaddr *,
         socklen_t);
    struct iovec part = {(void *)data, size};
    AROUND_SEND(at_descriptor("sendto", fd, &part, 1), fd, &part, 1,
                real(fd, data, size, flags, to, length));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    REAL(ssize_t, "sendmsg", int, const struct msghdr *, int);
    int count = (int)message->msg_iovlen;
    const struct iovec *parts = message->msg_iov;
    AROUND_SEND(at_descriptor("sendmsg", fd, parts, count), fd, parts, count,
                real(fd, message, flags));
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(ssize_t, "pwrite", int, const void *, size_t, off_t);
    AROUND(ssize_t, at_descriptor("pwrite64", fd, NULL, 0), -1, real(fd, data, size, at));
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    return pwrite(fd, data, size, at);
}

ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) {
    REAL(ssize_t, "pwritev", int, const struct iovec *, int, off_t);
    AROUND(ssize_t, at_descriptor("pwritev", fd, NULL, 0), -1, real(fd, parts, count, at));
}

int fsync(int fd) {
    REAL(int, "fsync", int);
    AROUND(int, at_descriptor("fsync", fd, NULL, 0), -1, real(fd));
}

int fdatasync(int fd) {
    REAL(int, "fdatasync", int);
    AROUND(int, at_descriptor("fdatasync", fd, NULL, 0), -1, real(fd));
}

int ftruncate(int fd, off_t size) {
    REAL(int, "ftruncate", int, off_t);
    AROUND(int, at_descriptor("ftruncate", fd, NULL, 0), -1, real(fd, size));
}

int ftruncate64(int fd, off64_t size) { return ftruncate(fd, size); }

int posix_fallocate(int fd, off_t at, off_t size) {
    REAL(int, "posix_fallocate", int, off_t, off_t);
    int wanted = at_descriptor("fallocate", fd, NULL, 0);
    if (wanted == FAIL) return order->error; /* its way to say so */
    int result = real(fd, at, size);
    if (wanted == KILL_AFTER) end();
    return result;
}

int posix_fallocate64(int fd, off64_t at, off64_t size) {
    return posix_fallocate(fd, at, size);
}

int fchmod(int fd, mode_t mode) {
    REAL(int, "fchmod", int, mode_t);
    AROUND(int, at_descriptor("chmod", fd, NULL, 0), -1, real(fd, mode));
}

int chmod(const char *path, mode_t mode) {
    REAL(int, "chmod", const char *, mode_t);
    AROUND(int, at_path("chmod", AT_FDCWD, path), -1, real(path, mode));
}

int mkdir(const char *path, mode_t mode) {
    REAL(int, "mkdir", const char *, mode_t);
    AROUND(int, at_path("mkdir", AT_FDCWD, path), -1, real(path, mode));
}

int mkdirat(int base, const char *path, mode_t mode) {
    REAL(int, "mkdirat", int, const char *, mode_t);
    AROUND(int, at_path("mkdir", base, path), -1, real(base, path, mode));
}

int rmdir(const char *path) {
    REAL(int, "rmdir", const char *);
    AROUND(int, at_path("rmdir", AT_FDCWD, path), -1, real(path));
}

int unlink(const char *path) {
    REAL(int, "unlink", const char *);
    AROUND(int, at_path("unlink", AT_FDCWD, path), -1, real(path));
}

int unlinkat(int base, const char *path, int flags) {
    REAL(int, "unlinkat", int, const char *, int);
    const char *called = flags & AT_REMOVEDIR ? "rmdir" : "unlink";
    AROUND(int, at_path(called, base, path), -1, real(base, path, flags));
}

int rename(const char *from, const char *to) {
    REAL(int, "rename", const char *, const char *);
    AROUND(int, at_path("rename", AT_FDCWD, to), -1, real(from, to));
}

int renameat(int from_base, const char *from, int base, const char *to) {
    REAL(int, "renameat", int, const char *, int, const char *);
    AROUND(int, at_path("rename", base, to), -1, real(from_base, from, base, to));
}

static int opened(int base, const char *path, int flags, mode_t mode) {
    REAL(int, "openat", int, const char *, int, ...);
    int creates = (flags & O_CREAT) != 0;
    AROUND(int, creates ? at_path("creat", base, path) : NOTHING, -1,
           real(base, path, flags, mode));
}

static mode_t mode_of(int flags, va_list given) {
    return flags & (O_CREAT | O_TMPFILE) ? va_arg(given, mode_t) : 0;
}

#define OPENED(base, path, flags)                                     \
    va_list given;                                                    \
    va_start(given, flags);                                           \
    mode_t mode = mode_of(flags, given);                              \
    va_end(given);                                                    \
    return opened(base, path, flags, mode)

int open(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int open64(const char *path, int flags, ...) { OPENED(AT_FDCWD, path, flags); }
int openat(int base, const char *path, int flags, ...) { OPENED(base, path, flags); }
int openat64(int base, const char *path, int flags, ...) { OPENED(base, path, flags); }

/* where an address leads; 0: nowhere that counts */
static int address_target(const struct sockaddr *address, char *out, size_t room) {
    if (address->sa_family == AF_UNIX) {
        const char *path = ((const struct sockaddr_un *)address)->sun_path;
        const char *last = strrchr(path, '/');
        snprintf(out, room, "%s", last ? last + 1 : path);
        return *path != 0;
    }
    int end = end_of(address);
    strcpy(out, end == POSTGRES ? "PostgreSQL" : end == KAFKA ? "Kafka" : "network");
    return port_of(address) != 0;
}

static int at_address(const char *called, const struct sockaddr *address) {
    char target[TEXT];
    int kept = errno, wanted = NOTHING;
    if (order && !inside) {
        inside = 1;
        if (address_target(address, target, sizeof target))
            wanted = reached(called, target, "", 1);
        inside = 0;
    }
    errno = kept;
    return wanted;
}

int connect(int fd, const struct sockaddr *address, socklen_t length) {
    REAL(int, "connect", int, const struct sockaddr *, socklen_t);
    if (order && fd >= 0 && fd < DESCRIPTORS)
        streams[fd] = (struct stream){.kind = end_of(address)};
    AROUND(int, at_address("connect", address), -1, real(fd, address, length));
}

int bind(int fd, const struct sockaddr *address, socklen_t length) {
    REAL(int, "bind", int, const struct sockaddr *, socklen_t);
    int is_file = address->sa_family == AF_UNIX;
    AROUND(int, is_file ? at_address("bind", address) : NOTHING, -1,
           real(fd, address, length));
}

/* a worker learns from its first line whether it is one of a detached sink */
ssize_t read(int fd, void *data, size_t size) {
    REAL(ssize_t, "read", int, void *, size_t);
    ssize_t got = real(fd, data, size);
    if (order && !fd && got > 0 && !strcmp(role, "worker")) {
        const char *sink = memmem(data, got, "\"sink\":", 7);
        const char *end = (const char *)data + got;
        if (sink) {
            for (sink += 7; sink < end && *sink == ' '; sink++);
            if (end - sink > 1 && sink[0] == '"' && sink[1] != '"') strcpy(role, "sink");
        }
    }
    return got;
}
