// Runs a HIP kernel on the host, lane by lane. Each thread of a workgroup is a fiber; a barrier is
// where all threads of the group meet, a wave operation (shuffle, matrix core) where all lanes of a
// wave meet: the last to come finds every operand, one function computes all results, and the lanes
// go on. So a missing barrier, a divergent one or a wave operation in divergent lanes shows as a
// wrong result or a fault. Nothing here says anything of speed.
//
// A new wave operation (MFMA, WMMA) is one function over Wave and one line in device_builtins.h.
#pragma once
#include <cstdint>

namespace mock_hip {

constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxWave = 64;

struct LaunchShape {
  unsigned groups[3];
  unsigned threads;  // of a group
  unsigned wave;     // lanes of a wave
  unsigned seed;     // order in which waves and lanes run; a right kernel does not depend on it
};

// Runs the whole grid on this thread. Returns what the kernel did wrong, or null.
const char* run_grid(const LaunchShape& shape, void (*body)(void* argument), void* argument);

// ---- what the body may call ----

unsigned thread_in_group();
unsigned group_index(unsigned axis);
const void* argument_block();
void meet_group();

// The lanes of one wave at a wave operation. Lanes that have ended have in == null.
struct Wave {
  unsigned size;
  const void* in[kMaxWave];
  void* out[kMaxWave];
};
using WaveFunction = void (*)(const Wave& wave);
void meet_wave(WaveFunction function, const void* in, void* out);

// value as lane `byte_address / 4` holds it: ds_bpermute. Ended lanes give 0.
int shuffle_from(int byte_address, int value);

}  // namespace mock_hip
