/* NVIDIA's management library with one GPU at 0000:07:00.0, for tests of greta-cli. */
#include <string.h>

#define API __attribute__((visibility("default")))

static int started;
static char gpu;

API int nvmlInit_v2(void) { return ++started, 0; }
API int nvmlShutdown(void) { return --started, 0; }
API int fake_nvml_started(void) { return started; }

API int nvmlDeviceGetHandleByPciBusId_v2(const char* pci, void** out) {
  *out = &gpu;
  return started && !strcmp(pci, "0000:07:00.0") ? 0 : 6;
}

API int nvmlDeviceGetClockInfo(void* device, int kind, unsigned* out) {
  *out = kind == 2 ? 2619 : kind == 0 ? 1755 : 1;
  return device != &gpu;
}

API int nvmlDeviceGetMaxClockInfo(void* device, int kind, unsigned* out) {
  *out = kind == 2 ? 2619 : kind == 0 ? 1980 : 1;
  return device != &gpu;
}

API int nvmlDeviceGetPowerUsage(void* device, unsigned* out) {
  *out = 412500;
  return device != &gpu;
}

API int nvmlDeviceGetTemperature(void* device, int sensor, unsigned* out) {
  *out = 51;
  return device != &gpu || sensor;
}

API int nvmlDeviceGetMemoryInfo(void* device, unsigned long long* out) {
  out[0] = 80ull << 30, out[1] = 70ull << 30, out[2] = 10ull << 30;
  return device != &gpu;
}

API int nvmlDeviceGetMemoryBusWidth(void* device, unsigned* out) {
  *out = 5120;
  return device != &gpu;
}
