/* What the system says of this process. */

#ifndef TRANSECT_FACTS_H
#define TRANSECT_FACTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* `Cpus_allowed_list` of /proc/self/status; false where there is none. */
bool facts_allowed_cpus(char *text, size_t size);

/* `VmHWM` of /proc/self/status: the most memory that this program had resident, in bytes. Unlike
   getrusage's, it does not begin with the peak of the process that started the program. False where
   there is none. */
bool facts_peak_memory(int64_t *bytes);

/* The file that is mapped at an address; false where there is none. */
bool facts_mapped_file(const void *address, char *text, size_t size);

#endif
