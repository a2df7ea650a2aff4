/** Is there a CUDA device? Asked of the driver itself, before any framework is loaded. */

import koffi from 'koffi';

/** Return the number of CUDA devices that the driver shows; 0 without a driver. */
export function cudaDevices() {
  let driver;
  try {
    driver = koffi.load('libcuda.so.1');
  } catch {
    return 0;
  }
  const init = driver.func('int cuInit(unsigned int flags)');
  const getCount = driver.func('int cuDeviceGetCount(_Out_ int *count)');
  const count = [0];
  return init(0) === 0 && getCount(count) === 0 ? count[0] : 0;
}
