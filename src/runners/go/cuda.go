package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>

// Counts the CUDA devices that the driver shows; 0 without a driver.
static int cuda_devices(void) {
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
	if (!driver) return 0;
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(driver, "cuInit");
	int (*count)(int *) = (int (*)(int *))dlsym(driver, "cuDeviceGetCount");
	int found = 0;
	if (!init || !count || init(0) != 0 || count(&found) != 0) return 0;
	return found;
}
*/
import "C"

func cudaDevices() int { return int(C.cuda_devices()) }
