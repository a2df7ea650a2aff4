#include "cuda.hpp"

#include <dlfcn.h>

#include <cstdint>
#include <string>

#include "failure.hpp"

namespace transect::cuda {

namespace {

// The driver's functions; null where it has none, or is not there itself.
struct Driver {
    int (*init)(unsigned flags) = nullptr;
    int (*count_devices)(int* count) = nullptr;
    int (*copy)(void* to, std::uintptr_t from, std::size_t bytes) = nullptr;
    int (*upload)(std::uintptr_t to, const void* from, std::size_t bytes) = nullptr;

    Driver() {
        void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
        if (!library) return;
        init = reinterpret_cast<decltype(init)>(dlsym(library, "cuInit"));
        count_devices =
            reinterpret_cast<decltype(count_devices)>(dlsym(library, "cuDeviceGetCount"));
        copy = reinterpret_cast<decltype(copy)>(dlsym(library, "cuMemcpyDtoH_v2"));
        upload = reinterpret_cast<decltype(upload)>(dlsym(library, "cuMemcpyHtoD_v2"));
    }
};

const Driver& driver() {
    static const Driver loaded;
    return loaded;
}

void check(int error, const char* call, std::size_t bytes) {
    if (error == 0) return;
    throw Failure(Cause::crash, "CUDA: " + std::string(call) + " returned " +
                                    std::to_string(error) + " for " + std::to_string(bytes) +
                                    " bytes");
}

}  // namespace

void require_device() {
    const auto& has = driver();
    int count = 0;
    const bool there = has.init && has.count_devices && has.copy && has.upload && has.init(0) == 0 &&
                       has.count_devices(&count) == 0 && count > 0;
    if (!there) throw Failure(Cause::no_provider, "no CUDA device");
}

void copy_to_host(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    check(driver().copy(to, reinterpret_cast<std::uintptr_t>(from), bytes), "cuMemcpyDtoH", bytes);
}

void copy_to_device(void* to, const void* from, std::size_t bytes) {
    if (bytes == 0) return;
    check(driver().upload(reinterpret_cast<std::uintptr_t>(to), from, bytes), "cuMemcpyHtoD",
          bytes);
}

}  // namespace transect::cuda
