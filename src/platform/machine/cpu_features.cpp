// A feature counts only if the processor has it (cpuid) and the system saves the registers that it uses.
#include "platform/machine/cpu_features.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "platform/machine/cgroup.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace greta {

namespace {

struct Cpu {
  uint32_t features = 0;
  char name[64] = "CPU";
  Cpu();
};

#if defined(__x86_64__)
bool has(uint32_t value, std::initializer_list<uint32_t> bits) {
  return std::all_of(bits.begin(), bits.end(), [&](uint32_t bit) { return value >> bit & 1; });
}

// The register sets that the system saves: bits 0x6 are xmm and ymm, bits 0xe0 the three of AVX-512,
// bits 0x60000 the two of AMX.
uint32_t saved_registers() {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

void read_brand(char (&name)[64]) {
  uint32_t words[13] = {};
  for (uint32_t part = 0; part < 3; ++part) {
    uint32_t* w = words + 4 * part;
    if (!__get_cpuid(0x80000002 + part, w, w + 1, w + 2, w + 3)) return;
  }
  const char* text = reinterpret_cast<const char*>(words);
  text += strspn(text, " ");
  size_t length = strnlen(text, 48);
  while (length && text[length - 1] == ' ') --length;
  if (!length) return;
  memcpy(name, text, length);
  name[length] = 0;
}

Cpu::Cpu() {
  read_brand(name);
  uint32_t a, b, c, d, b7, c7, d7;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return;
  const bool avx = has(c, {12, 27, 28, 29});  // FMA, OSXSAVE, AVX, F16C
  if (!avx || !__get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) return;
  const uint32_t saved = saved_registers();
  if ((saved & 0x6) != 0x6 || !has(b7, {5})) return;  // AVX2
  features |= kCpuAvx2;
  // F, DQ, BW, VL; VNNI
  if ((saved & 0xe0) != 0xe0 || !has(b7, {16, 17, 30, 31}) || !has(c7, {11})) return;
  features |= kCpuAvx512Vnni;
  // AMX-TILE, AMX-BF16; AVX512_BF16
  uint32_t a71 = 0;
  if ((saved & 0x60000) != 0x60000 || !has(d7, {22, 24}) || !__get_cpuid_count(7, 1, &a71, &b, &c, &d))
    return;
  if (has(a71, {5})) features |= kCpuAmx;
}
#else
Cpu::Cpu() = default;
#endif

const Cpu& cpu() {
  static const Cpu cpu;
  return cpu;
}

uint32_t affinity_count() {
  for (int processors = 1024; processors <= 1 << 20; processors *= 4) {
    cpu_set_t* set = CPU_ALLOC(processors);
    if (!set) return 1;
    const size_t bytes = CPU_ALLOC_SIZE(processors);
    const bool known = sched_getaffinity(0, bytes, set) == 0;  // fails if the machine has more processors
    const int count = known ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (known) return uint32_t(std::max(count, 1));
  }
  return 1;
}

// What sysinfo knows, for a process that may open no more files. The numbers of /proc are better, since here
// memory that caches files does not count as free.
struct SystemMemory {
  uint64_t total = 0, free = 0;
  SystemMemory() {
    struct sysinfo info;
    if (sysinfo(&info)) return;
    total = uint64_t(info.totalram) * info.mem_unit;
    free = (uint64_t(info.freeram) + info.bufferram) * info.mem_unit;
  }
};

}  // namespace

uint32_t cpu_features() { return cpu().features; }

// Linux gives a process the 8 kB of a thread's tiles on request (Documentation/arch/x86/xstate.rst), to all
// its threads. It refuses where a thread has a signal stack that could not hold them.
bool permit_amx() {
#if defined(__x86_64__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (cpu_features() & kCpuAmx) && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

const char* cpu_name() { return cpu().name; }
uint32_t cpu_count() { return std::min(affinity_count(), read_cgroup_limits("").cpu_count); }

uint64_t memory_total_bytes() {
  const uint64_t read = read_meminfo("", "MemTotal:");
  return std::min(read ? read : SystemMemory().total, read_cgroup_limits("").memory_bytes);
}
uint64_t memory_available_bytes() {
  const uint64_t read = read_meminfo("", "MemAvailable:");
  return std::min(read ? read : SystemMemory().free, read_cgroup_limits("").memory_available_bytes);
}

}  // namespace greta
