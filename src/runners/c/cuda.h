/* Copies between host and device by CUDA's driver, which is loaded at run time. */

#ifndef TRANSECT_CUDA_H
#define TRANSECT_CUDA_H

#include <stddef.h>

/* Before the first copy. */
void cuda_open(void);

void cuda_to_host(void *to, const void *from, size_t bytes);
void cuda_to_device(void *to, const void *from, size_t bytes);

#endif
