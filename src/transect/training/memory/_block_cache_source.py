"""The C of `_block_cache`: large blocks that wait to be asked for again."""

from __future__ import annotations

SOURCE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc's own, beneath the functions of this file. */
void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

#define LEAST ((size_t)1 << 16)
#define PAGE ((size_t)4096)
#define BLOCKS (1u << 16)
#define PLACES (4 * BLOCKS)
#define BINS 512

typedef struct Block {
    char *address;
    size_t size;
    int waits, fresh;
    struct Block *next, *before;    /* in its bin */
    struct Block *younger, *older;  /* among all that wait */
} Block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Block blocks[BLOCKS], *unused, *table[PLACES], *bins[BINS], *oldest, *youngest;
static unsigned begun;
static size_t live, live_peak, mapped, mapped_peak;

/* Eight bins for each doubling. */
static unsigned bin_of(size_t size) {
    unsigned power = 63 - (unsigned)__builtin_clzll(size);
    return 8 * power + (unsigned)((size >> (power - 3)) & 7);
}

static unsigned place_of(const void *address) {
    return (unsigned)((((uint64_t)(uintptr_t)address >> 12) * 0x9E3779B97F4A7C15ull) >> 32) % PLACES;
}

static Block *find(const void *address) {
    for (unsigned i = place_of(address); table[i]; i = (i + 1) % PLACES)
        if (table[i]->address == (const char *)address) return table[i];
    return NULL;
}

static void enter(Block *b) {
    unsigned i = place_of(b->address);
    while (table[i]) i = (i + 1) % PLACES;
    table[i] = b;
}

static void forget(Block *b) {
    unsigned i = place_of(b->address), hole;
    while (table[i] != b) i = (i + 1) % PLACES;
    /* Those behind it move up, unless they would stand before their own place. */
    for (hole = i, i = (i + 1) % PLACES; table[i]; i = (i + 1) % PLACES) {
        unsigned own = place_of(table[i]->address);
        if ((i - own) % PLACES >= (i - hole) % PLACES) table[hole] = table[i], hole = i;
    }
    table[hole] = NULL;
}

static void wait_for_use(Block *b) {
    Block **bin = &bins[bin_of(b->size)];
    b->waits = 1, b->before = NULL, b->next = *bin;
    if (*bin) (*bin)->before = b;
    *bin = b;
    b->younger = NULL, b->older = youngest;
    if (youngest) youngest->younger = b; else oldest = b;
    youngest = b;
}

static void end_waiting(Block *b) {
    if (b->before) b->before->next = b->next; else bins[bin_of(b->size)] = b->next;
    if (b->next) b->next->before = b->before;
    if (b->older) b->older->younger = b->younger; else oldest = b->younger;
    if (b->younger) b->younger->older = b->older; else youngest = b->older;
    b->waits = 0;
}

static void give_back(Block *b) {
    end_waiting(b);
    forget(b);
    munmap(b->address, b->size);
    mapped -= b->size;
    b->next = unused, unused = b;
}

/* One that waits, at most an eighth too large. */
static Block *waiting(size_t size) {
    for (unsigned bin = bin_of(size), last = bin_of(size + size / 8); bin <= last; bin++)
        for (Block *b = bins[bin]; b; b = b->next)
            if (b->size >= size && b->size - size <= size / 8) return end_waiting(b), b;
    return NULL;
}

/* The kernel's own: below, mmap is one of this file's functions, which take the lock. */
static void *map_pages(void *at, size_t size, int rights, int how, int file, off_t from) {
    return (void *)syscall(SYS_mmap, at, size, rights, how, file, from);
}

static Block *map_one(size_t size) {
    Block *b = unused;
    if (b) unused = b->next;
    else if (begun < BLOCKS) b = &blocks[begun++];
    else return NULL;
    for (;;) {
        b->address = map_pages(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (b->address != MAP_FAILED) break;
        if (!oldest) return b->next = unused, unused = b, NULL;
        give_back(oldest);
    }
    b->size = size, b->waits = 0, b->fresh = 1;
    enter(b);
    mapped += size;
    if (mapped > mapped_peak) mapped_peak = mapped;
    return b;
}

/* Returns 1 and a block, 0 where there is none to be had, -1 where glibc has to be asked. */
static int take(size_t size, int zero, void **result) {
    if (size < LEAST || size > PTRDIFF_MAX / 2) return -1;
    int saved = errno;
    size = (size + PAGE - 1) & ~(PAGE - 1);
    pthread_mutex_lock(&lock);
    Block *b = waiting(size);
    if (!b) b = map_one(size);
    int full = !b && begun == BLOCKS && !unused, fresh = b && b->fresh;
    if (b) {
        b->fresh = 0;
        live += b->size;
        if (live > live_peak) live_peak = live;
    }
    pthread_mutex_unlock(&lock);
    if (full) return -1;
    if (!b) return 0;
    if (zero && !fresh) memset(b->address, 0, b->size);
    errno = saved;
    *result = b->address;
    return 1;
}

/* Returns how much a block of ours holds, 0 for any other. */
static size_t ours(const void *address, int release) {
    if ((uintptr_t)address % PAGE || !address) return 0;
    pthread_mutex_lock(&lock);
    Block *b = find(address);
    size_t size = b && !b->waits ? b->size : 0;
    if (size && release) live -= size, wait_for_use(b);
    pthread_mutex_unlock(&lock);
    return size;
}

int transect_blocks_drop(void) {
    pthread_mutex_lock(&lock);
    int any = oldest != NULL;
    while (oldest) give_back(oldest);
    pthread_mutex_unlock(&lock);
    return any;
}

/* Bytes in use and mapped, and the most of both since they were asked for. */
void transect_blocks_told(size_t *four) {
    pthread_mutex_lock(&lock);
    four[0] = live, four[1] = live_peak, four[2] = mapped, four[3] = mapped_peak;
    live_peak = live, mapped_peak = mapped;
    pthread_mutex_unlock(&lock);
}

void *malloc(size_t size) {
    void *p = NULL;
    int got = take(size, 0, &p);
    if (got < 0) { p = __libc_malloc(size); if (!p && transect_blocks_drop()) p = __libc_malloc(size); }
    if (!p) errno = ENOMEM;
    return p;
}

void free(void *p) {
    if (!ours(p, 1)) __libc_free(p);
}

void *calloc(size_t count, size_t each) {
    size_t size;
    void *p = NULL;
    int got = __builtin_mul_overflow(count, each, &size) ? -1 : take(size, 1, &p);
    if (got < 0) { p = __libc_calloc(count, each); if (!p && transect_blocks_drop()) p = __libc_calloc(count, each); }
    if (!p) errno = ENOMEM;
    return p;
}

void *realloc(void *p, size_t size) {
    size_t had = ours(p, 0);
    if (!had) {
        void *q = __libc_realloc(p, size);
        if (!q && size && transect_blocks_drop()) q = __libc_realloc(p, size);
        return q;
    }
    if (size == 0) return free(p), NULL;
    if (size <= had && size > had / 2) return p;
    void *q = malloc(size);
    if (q) memcpy(q, p, size < had ? size : had), free(p);
    return q;
}

void *memalign(size_t alignment, size_t size) {
    void *p = NULL;
    int got = alignment <= PAGE ? take(size, 0, &p) : -1;
    if (got < 0) { p = __libc_memalign(alignment, size); if (!p && transect_blocks_drop()) p = __libc_memalign(alignment, size); }
    if (!p) errno = ENOMEM;
    return p;
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) || !alignment || alignment & (alignment - 1)) return EINVAL;
    int saved = errno;
    void *p = memalign(alignment, size);
    errno = saved;
    if (!p) return ENOMEM;
    *result = p;
    return 0;
}

/* Who maps pages or begins a thread himself has his part of the limit before those that only wait. */
static void *(*libc_mmap)(void *, size_t, int, int, int, off_t);
static int (*libc_create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
static size_t (*libc_usable)(void *);

void *mmap(void *at, size_t size, int rights, int how, int file, off_t from) {
    /* Others' constructors may run before the one below. */
    void *(*map)(void *, size_t, int, int, int, off_t) = libc_mmap ? libc_mmap : map_pages;
    void *p = map(at, size, rights, how, file, from);
    if (p == MAP_FAILED && errno == ENOMEM && transect_blocks_drop()) p = map(at, size, rights, how, file, from);
    return p;
}

void *mmap64(void *at, size_t size, int rights, int how, int file, off_t from) {
    return mmap(at, size, rights, how, file, from);
}

static void find_libc(void) {
    *(void **)&libc_mmap = dlsym(RTLD_NEXT, "mmap");
    *(void **)&libc_create = dlsym(RTLD_NEXT, "pthread_create");
    *(void **)&libc_usable = dlsym(RTLD_NEXT, "malloc_usable_size");
}

int pthread_create(pthread_t *made, const pthread_attr_t *how, void *(*run)(void *), void *with) {
    if (!libc_create) find_libc();
    int fault = libc_create(made, how, run, with);
    return fault == EAGAIN && transect_blocks_drop() ? libc_create(made, how, run, with) : fault;
}

size_t malloc_usable_size(void *p) {
    size_t size = ours(p, 0);
    if (size) return size;
    if (!libc_usable) find_libc();
    return libc_usable ? libc_usable(p) : 0;
}

static void hold(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void begin(void) { find_libc(); pthread_atfork(hold, release, release); }
"""
