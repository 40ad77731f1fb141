// What a kernel does to shared memory (LDS), and how often its lanes want the same bank. lds_banks.py
// compiles a kernel for the host so that each load and store calls a function below, and links this file
// with it.
//
// The n-th access of a lane at one place of the code belongs to the n-th of the other lanes of its wave:
// together they are one instruction. LDS serves its lanes in phases, each of which takes as many clocks as
// the busiest bank has different words. The phases of 8 and 16 bytes are those that were measured on CDNA 4
// (64 banks of 4 bytes). Those of CDNA 2 and 3, and of stores of 16 bytes, are taken to be alike.
//
// Only the first accesses are looked at (kMostOfLane, kMostInstructions): loops repeat themselves. After
// them, or at the end of the process, lines on the standard error say what was seen, and the process ends:
//   lds <loads or stores> <bytes of a lane> <instructions> <phases> <clocks>
#include <link.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>

#include "tests/mock_hip/lane_emulator.h"

namespace {

constexpr unsigned kLanes = 64;
constexpr unsigned kMostOfLane = 64;           // accesses of a lane at a place of the code, in a group
constexpr uint64_t kMostInstructions = 20000;  // of a wave
constexpr uint64_t kAbsent = ~uint64_t(0);

struct Access {
  uint64_t at[kLanes];
  Access() {
    for (uint64_t& address : at) address = kAbsent;
  }
};

struct Count {
  uint64_t instructions = 0, phases = 0, clocks = 0;
};
using Kind = std::pair<bool, unsigned>;  // whether it stores, and the bytes of a lane

std::map<Kind, Count> counts;

// Half a wave reads 16 bytes a lane in two phases.
unsigned phase_of(Kind kind, unsigned lane) {
  if (kind.second == 16) {
    const unsigned i = lane % 32;
    const bool first = i < 4 || (i >= 12 && i < 16) || (i >= 20 && i < 28);
    return lane / 32 * 2 + !first;
  }
  return kind.first && kind.second == 8 ? lane / 16 : lane / 32;
}

unsigned banks_of(Kind kind) { return kind.second == 16 || (kind.second == 8 && !kind.first) ? 64 : 32; }

void add(Kind kind, const Access& access, Count* count) {
  std::map<unsigned, std::map<unsigned, std::set<uint64_t>>> words;  // of each bank, in each phase
  for (unsigned lane = 0; lane < kLanes; ++lane)
    for (unsigned i = 0; access.at[lane] != kAbsent && i < (kind.second + 3) / 4; ++i) {
      const uint64_t word = access.at[lane] / 4 + i;
      words[phase_of(kind, lane)][unsigned(word % banks_of(kind))].insert(word);
    }
  ++count->instructions;
  for (const auto& [phase, banks] : words) {
    size_t most = 0;
    for (const auto& [bank, different] : banks) most = different.size() > most ? different.size() : most;
    ++count->phases;
    count->clocks += most;
  }
}

// What was seen of the group that runs. One thread of the host runs all groups (MOCK_HIP_THREADS=1).
struct Trace {
  uint64_t begin = 0, end = 0;  // where the kernel's shared variables are
  uint64_t flushed = 0;         // instructions
  const void* block = nullptr;
  unsigned group[3] = {};
  std::map<std::tuple<const void*, unsigned>, unsigned> seen;  // accesses of a lane at a place
  std::map<std::tuple<const void*, Kind, unsigned, unsigned>, Access> accesses;

  void flush() {
    for (const auto& [key, access] : accesses) add(std::get<1>(key), access, &counts[std::get<1>(key)]);
    flushed += accesses.size();
    seen.clear();
    accesses.clear();
  }
  [[noreturn]] void end_process() {
    flush();
    for (const auto& [kind, count] : counts)
      fprintf(stderr, "lds %s %u %lu %lu %lu\n", kind.first ? "stores" : "loads", kind.second,
              (unsigned long)count.instructions, (unsigned long)count.phases, (unsigned long)count.clocks);
    fflush(stderr);
    _exit(0);
  }
  ~Trace() { end_process(); }
} trace;

int find_shared(dl_phdr_info* info, size_t, void* here) {
  bool ours = false;
  uint64_t bytes = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    const uint64_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD) ours |= uint64_t(here) >= begin && uint64_t(here) < begin + part.p_memsz;
    if (part.p_type == PT_TLS) bytes = part.p_memsz;
  }
  if (!ours) return 0;
  trace.begin = uint64_t(info->dlpi_tls_data);
  trace.end = trace.begin + bytes;
  return 1;
}

void note(bool stores, unsigned bytes, const void* at, const void* place) {
  if (trace.end == 0) dl_iterate_phdr(find_shared, (void*)&find_shared);
  if (uint64_t(at) < trace.begin || uint64_t(at) >= trace.end) return;
  const unsigned group[3] = {mock_hip::group_index(0), mock_hip::group_index(1), mock_hip::group_index(2)};
  const void* block = mock_hip::argument_block();
  bool another = block != trace.block;
  for (int i = 0; i < 3; ++i) another |= group[i] != trace.group[i];
  if (another) {
    trace.flush();
    if (trace.flushed > kMostInstructions) trace.end_process();
    trace.block = block;
    for (int i = 0; i < 3; ++i) trace.group[i] = group[i];
  }
  const unsigned thread = mock_hip::thread_in_group();
  const unsigned n = trace.seen[{place, thread}]++;
  if (n >= kMostOfLane) return;
  Access& access = trace.accesses[{place, {stores, bytes}, thread / kLanes, n}];
  access.at[thread % kLanes] = uint64_t(at) - trace.begin;
}

}  // namespace

#define TRACED(bytes)                                              \
  extern "C" void __sanitizer_cov_load##bytes(void* at) {          \
    note(false, bytes, at, __builtin_return_address(0));           \
  }                                                                \
  extern "C" void __sanitizer_cov_store##bytes(void* at) {         \
    note(true, bytes, at, __builtin_return_address(0));            \
  }
TRACED(1)
TRACED(2)
TRACED(4)
TRACED(8)
TRACED(16)
