#include "facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void strip_line_end(char *text)
{
    text[strcspn(text, "\n")] = '\0';
}

/* What /proc/self/status has under a name; false where there is nothing. */
static bool status_value(const char *name, char *text, size_t size)
{
    size_t length = strlen(name);
    FILE *file = fopen("/proc/self/status", "r");
    bool found = false;
    char line[4096];
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        found = strncmp(line, name, length) == 0 && line[length] == ':';
        if (found) {
            strip_line_end(line);
            const char *value = line + length + 1;
            snprintf(text, size, "%s", value + strspn(value, " \t"));
        }
    }
    if (file != NULL)
        fclose(file);
    return found;
}

bool facts_allowed_cpus(char *text, size_t size)
{
    return status_value("Cpus_allowed_list", text, size);
}

bool facts_peak_memory(int64_t *bytes)
{
    char text[64];
    int64_t kilobytes;
    if (!status_value("VmHWM", text, sizeof text) || sscanf(text, "%" SCNd64 " kB", &kilobytes) != 1)
        return false;
    *bytes = kilobytes * 1024;
    return true;
}

bool facts_mapped_file(const void *address, char *text, size_t size)
{
    FILE *file = fopen("/proc/self/maps", "r");
    uintptr_t wanted = (uintptr_t)address;
    bool found = false;
    char line[8192];
    while (file != NULL && !found && fgets(line, sizeof line, file) != NULL) {
        uintptr_t begin, end;
        const char *path = strchr(line, '/');
        if (path == NULL || sscanf(line, "%" SCNxPTR "-%" SCNxPTR, &begin, &end) != 2)
            continue;
        found = begin <= wanted && wanted < end;
        if (found) {
            strip_line_end(line);
            snprintf(text, size, "%s", path);
        }
    }
    if (file != NULL)
        fclose(file);
    return found;
}
