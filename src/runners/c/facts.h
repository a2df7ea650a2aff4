/* What the system says of this process. */

#ifndef TRANSECT_FACTS_H
#define TRANSECT_FACTS_H

#include <stdbool.h>
#include <stddef.h>

/* `Cpus_allowed_list` of /proc/self/status; false where there is none. */
bool facts_allowed_cpus(char *text, size_t size);

/* The file that is mapped at an address; false where there is none. */
bool facts_mapped_file(const void *address, char *text, size_t size);

#endif
