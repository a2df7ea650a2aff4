#include "plan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { VERSION = 1, BYTE_ORDER_MARK = 0x01020304 };

_Static_assert(sizeof(struct plan) == 192 && sizeof(struct entry) == 128, "as in the contract");

/* A part of a file, or all of it where `size` is 0. Writable pages of one's own are all read at
   once: none is fetched while something is timed. NULL, and why. */
static unsigned char *map(const char *path, uint64_t at, size_t *size, char *why, size_t room)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    struct stat facts;
    void *mapped = MAP_FAILED;
    uint64_t before = at % (uint64_t)sysconf(_SC_PAGESIZE);
    if (file >= 0 && fstat(file, &facts) == 0) {
        *size = *size > 0 ? *size : (size_t)facts.st_size;
        mapped = *size == 0 ? (void *)""
                            : mmap(NULL, *size + before, PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_POPULATE, file, (off_t)(at - before));
    }
    if (mapped == MAP_FAILED)
        snprintf(why, room, "%s: cannot be read: %s", path, strerror(errno));
    if (file >= 0)
        close(file);
    return mapped == MAP_FAILED ? NULL : (unsigned char *)mapped + before;
}

const struct plan *plan_open(const char *path, char *why, size_t room)
{
    size_t size = 0;
    struct plan *plan = (struct plan *)map(path, 0, &size, why, room);
    if (plan == NULL)
        return NULL;
    if (size < 24 || memcmp(plan->magic, "TRANSECT", 8) != 0)
        snprintf(why, room, "%s: is no plan, expected a file that begins with TRANSECT", path);
    else if (plan->mark != BYTE_ORDER_MARK)
        snprintf(why, room, "%s: is of another byte order: mark %#010x, expected %#010x", path,
                 plan->mark, BYTE_ORDER_MARK);
    else if (plan->version != VERSION)
        snprintf(why, room, "%s: is of version %u, expected %d", path, plan->version, VERSION);
    else if (plan->size != size || size < sizeof *plan)
        snprintf(why, room, "%s: holds %zu bytes, expected %llu", path, size,
                 (unsigned long long)plan->size);
    else {
        for (size_t i = 0; i < plan->count; i++) {
            struct entry *entry = (struct entry *)plan_entry(plan, i);
            entry->name = (const char *)plan + entry->name_at;
            entry->text = (const char *)plan + entry->text_at;
        }
        return plan;
    }
    return NULL;
}

const struct entry *plan_entry(const struct plan *plan, size_t number)
{
    return (const struct entry *)(plan + 1) + number;
}

const struct entry *plan_next(const struct plan *plan, const struct entry *after, enum role role,
                              int group)
{
    const struct entry *end = plan_entry(plan, plan->count);
    const struct entry *entry = after == NULL ? plan_entry(plan, 0) : after + 1;
    while (entry < end && (entry->role != (uint32_t)role ||
                           (group != ANY_GROUP && entry->group != (uint32_t)group)))
        entry++;
    return entry < end ? entry : NULL;
}

size_t plan_count(const struct plan *plan, enum role role, int group)
{
    size_t count = 0;
    for_entries(entry, plan, role, group)
        count++;
    return count;
}

const char *plan_text(const struct plan *plan, enum role role, int group)
{
    const struct entry *entry = plan_next(plan, NULL, role, group);
    return entry == NULL ? NULL : entry->text;
}

const unsigned char *entry_data(const struct entry *entry, char *why, size_t room)
{
    size_t size = entry->size;
    if (size == 0)
        return (const unsigned char *)"";
    return map(entry->text, entry->data_at, &size, why, room);
}

void entry_drop(const struct entry *entry, const unsigned char *data)
{
    uint64_t before = entry->data_at % (uint64_t)sysconf(_SC_PAGESIZE);
    if (entry->size > 0)
        munmap((void *)(data - before), entry->size + before);
}

size_t entry_elements(const struct entry *entry)
{
    size_t elements = 1;
    for (size_t axis = 0; axis < entry->axes; axis++)
        elements *= (size_t)entry->shape[axis];
    return elements;
}

size_t dtype_size(uint32_t dtype)
{
    static const unsigned char sizes[] = {0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2};
    return dtype < sizeof sizes ? sizes[dtype] : 0;
}

int entry_is_finite(const struct entry *entry, const void *bytes)
{
    /* Of those all bits of the exponent are set; they are in a number's last two bytes. */
    static const uint16_t exponents[] = {[1] = 0x7f80, [10] = 0x7c00, [11] = 0x7ff0, [13] = 0};
    uint16_t exponent = entry->dtype <= 13 ? exponents[entry->dtype] : 0, last;
    size_t size = dtype_size(entry->dtype);
    for (size_t end = size; exponent != 0 && end <= entry->size; end += size) {
        memcpy(&last, (const char *)bytes + end - sizeof last, sizeof last);
        if ((last & exponent) == exponent)
            return 0;
    }
    return 1;
}
