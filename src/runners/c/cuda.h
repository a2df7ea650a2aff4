/* NVIDIA's driver, without CUDA's toolkit. */

#ifndef TRANSECT_CUDA_H
#define TRANSECT_CUDA_H

#include "failure.h"

/* Fails with CAUSE_NO_PROVIDER unless the driver shows a device. */
bool cuda_has_device(struct failure *failure);

/* Copies from the device and to it. The thread must have made a session on it, or run one: that
   makes it current. */
bool cuda_copy(void *to, const void *from, size_t bytes, struct failure *failure);
bool cuda_upload(void *to, const void *from, size_t bytes, struct failure *failure);

#endif
