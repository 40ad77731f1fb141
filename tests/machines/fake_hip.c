/* A libamdhip64 that plays a role. What it does stands in the file beside it, NAME.role, in lines:
 *   version 71526333            of the runtime
 *   device gfx1100 0000:03:00.0 0 24576 20480 Radeon    target, address, integrated, MiB in all, free, name
 *   abort init | segv count | hang count | print count | exit load | segv open    what happens in which call
 *   fault open    a page fault in the libhsa-runtime64 beside it, which it has opened for itself alone
 * It computes nothing: memory cannot be allocated. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct device {
  char target[64], pci[32], name[128];
  int integrated;
  unsigned long long all, free;
};
static struct device devices[128];
static int device_count, version = 70200000;
static char deeds[16][2][32];
static int deed_count, has_faulted;
static void* rocr;

/* Opens ROCr as newer runtimes do: none of its functions can be found through this library. */
static void open_rocr(const char* runtime) {
  char path[4096];
  snprintf(path, sizeof path, "%s", runtime);
  strcpy(strrchr(path, '/'), "/libhsa-runtime64.so.1");
  rocr = dlopen(path, RTLD_NOW | RTLD_LOCAL);
}

/* A kernel's page fault, which ROCr reports. */
static void page_fault(void) {
  void (*fault)(void) = rocr ? (void (*)(void))dlsym(rocr, "fake_page_fault") : NULL;
  if (!fault) fputs("there is no ROCr\n", stderr), _exit(3);
  fault();
  has_faulted = 1;
}

static void maybe(const char* call) {
  for (int i = 0; i < deed_count; ++i) {
    if (strcmp(deeds[i][1], call)) continue;
    const char* deed = deeds[i][0];
    if (!strcmp(deed, "abort")) fputs("hipErrorNoBinaryForGpu: no code for this GPU\n", stderr), abort();
    if (!strcmp(deed, "segv")) raise(SIGSEGV);
    if (!strcmp(deed, "exit")) _exit(3);
    if (!strcmp(deed, "hang"))
      for (;;) pause();
    if (!strcmp(deed, "print")) printf("amdgpu.ids: No such file or directory\n"), fflush(stdout);
    if (!strcmp(deed, "vanish")) device_count = 0;
    if (!strcmp(deed, "fault")) page_fault();
  }
}

__attribute__((constructor)) static void read_role(void) {
  Dl_info self;
  char path[4096], line[512];
  if (!dladdr((void*)read_role, &self)) return;
  snprintf(path, sizeof path, "%s.role", self.dli_fname);
  FILE* file = fopen(path, "r");
  while (file && fgets(line, sizeof line, file)) {
    struct device* d = &devices[device_count];
    if (sscanf(line, "version %d", &version) == 1) continue;
    if (sscanf(line, "device %63s %31s %d %llu %llu %127[^\n]", d->target, d->pci, &d->integrated, &d->all,
               &d->free, d->name) == 6)
      ++device_count;
    else if (sscanf(line, "%31s %31s", deeds[deed_count][0], deeds[deed_count][1]) == 2)
      ++deed_count;
  }
  if (file) fclose(file);
  open_rocr(self.dli_fname);
  maybe("load");
}

int hipRuntimeGetVersion(int* out) {
  *out = version;
  return 0;
}
int hipGetDeviceCount(int* out) {
  maybe("count");
  *out = device_count;
  return device_count ? 0 : 100;
}
#ifndef LACKS_PROPERTIES
int hipGetDevicePropertiesR0600(char* out, int index) {
  maybe("properties");
  if (index >= device_count) return 101;
  const struct device* d = &devices[index];
  unsigned domain = 0, bus = 0, slot = 0;
  sscanf(d->pci, "%x:%x:%x", &domain, &bus, &slot);
  memset(out, 0, 1472);
  strcpy(out, d->name);
  *(unsigned long long*)(out + 288) = d->all << 20;
  *(unsigned long long*)(out + 296) = 65536;
  *(int*)(out + 308) = strncmp(d->target, "gfx9", 4) ? 32 : 64;
  *(int*)(out + 320) = 1024;
  for (int i = 0; i < 3; ++i) *(int*)(out + 336 + 4 * i) = 65536;
  *(int*)(out + 388) = 48;
  *(int*)(out + 396) = d->integrated;
  *(int*)(out + 584) = (int)bus, *(int*)(out + 588) = (int)slot, *(int*)(out + 592) = (int)domain;
  strcpy(out + 1160, d->target);
  return 0;
}
#endif
int hipMemGetInfo(size_t* free, size_t* all) {
  *free = devices[0].free << 20, *all = devices[0].all << 20;
  return 0;
}
const char* hipGetErrorName(int error) { return error == 100 ? "hipErrorNoDevice" : "hipErrorNotSupported"; }
const char* hipGetErrorString(int error) { return hipGetErrorName(error); }
int hipGetLastError(void) { return 0; }
int hipGetDevice(int* out) { return *out = 0; }
int hipSetDevice(int index) { return index < device_count ? 0 : 101; }

#define NOT_SUPPORTED(name) \
  int name(void) { return 801; }
NOT_SUPPORTED(hipMalloc)
NOT_SUPPORTED(hipFree)
NOT_SUPPORTED(hipHostMalloc)
NOT_SUPPORTED(hipHostFree)
NOT_SUPPORTED(hipHostRegister)
NOT_SUPPORTED(hipHostUnregister)
NOT_SUPPORTED(hipHostGetDevicePointer)
int hipStreamCreateWithFlags(void** out, unsigned flags) {
  (void)flags;
  maybe("open"); /* the first call for a device that is opened */
  *out = devices;
  return has_faulted ? 0 : 801;
}
int hipEventCreateWithFlags(void** out, unsigned flags) {
  (void)flags;
  *out = devices;
  return has_faulted ? 0 : 801;
}
NOT_SUPPORTED(hipStreamDestroy)
NOT_SUPPORTED(hipStreamQuery)
NOT_SUPPORTED(hipStreamWaitEvent)
NOT_SUPPORTED(hipMemcpyAsync)
NOT_SUPPORTED(hipMemsetD32Async)
NOT_SUPPORTED(hipEventDestroy)
NOT_SUPPORTED(hipEventRecord)
NOT_SUPPORTED(hipEventQuery)
NOT_SUPPORTED(hipEventElapsedTime)
NOT_SUPPORTED(hipModuleLoadData)
NOT_SUPPORTED(hipModuleUnload)
NOT_SUPPORTED(hipModuleGetFunction)
NOT_SUPPORTED(hipModuleLaunchKernel)
NOT_SUPPORTED(hipStreamBeginCapture)
NOT_SUPPORTED(hipStreamEndCapture)
NOT_SUPPORTED(hipGraphInstantiate)
NOT_SUPPORTED(hipGraphLaunch)
NOT_SUPPORTED(hipGraphDestroy)
NOT_SUPPORTED(hipGraphExecDestroy)
NOT_SUPPORTED(hipThreadExchangeStreamCaptureMode)
