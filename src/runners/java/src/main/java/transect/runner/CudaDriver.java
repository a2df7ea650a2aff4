package transect.runner;

import com.sun.jna.NativeLibrary;
import com.sun.jna.ptr.IntByReference;

/** Asks the CUDA driver, without a framework. */
final class CudaDriver {
  private CudaDriver() {}

  /** Count the devices that the driver shows; 0 without a driver. */
  static int devices() {
    NativeLibrary driver;
    try {
      driver = NativeLibrary.getInstance("libcuda.so.1");
    } catch (UnsatisfiedLinkError error) {
      return 0;
    }
    IntByReference count = new IntByReference();
    if (driver.getFunction("cuInit").invokeInt(new Object[] {0}) != 0
        || driver.getFunction("cuDeviceGetCount").invokeInt(new Object[] {count}) != 0) {
      return 0;
    }
    return count.getValue();
  }
}
