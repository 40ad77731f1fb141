// What this processor can do; it is asked once. A kernel row names the feature bits that it needs.
#pragma once
#include <cstdint>

namespace greta {

enum CpuFeature : uint32_t {
  kCpuAvx2 = 1,        // with FMA and F16C, and the system saves ymm registers
  kCpuAvx512Vnni = 2,  // AVX-512 F BW VL DQ and VNNI, and the system saves zmm registers
  kCpuAmx = 4,  // AMX tiles of bfloat16 beside those; the system saves tiles for who asks: permit_amx()
};

uint32_t cpu_features();
bool permit_amx();       // whether the system lets this process use AMX tiles, for which it is asked here
const char* cpu_name();  // the brand string, or "CPU"
uint32_t cpu_count();    // processors that this process may use, by affinity and cgroup quota; at least 1
uint64_t memory_total_bytes();
uint64_t memory_available_bytes();  // what may be allocated now: free memory within the cgroup's limit

}  // namespace greta
