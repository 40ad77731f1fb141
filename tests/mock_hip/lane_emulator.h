// Runs a HIP kernel on the host, lane by lane. Each thread of a workgroup is a fiber; a barrier is
// where all threads of the group meet, a wave operation (shuffle, sum, matrix core) where all lanes of a
// wave meet: the last to come finds every operand, one function computes all results, and the lanes
// go on. So a missing barrier, a divergent one or a wave operation in divergent lanes shows as a
// wrong result or a fault, and a wild address is a fault too. Nothing here says anything of speed.
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
  // The order in which groups, waves and lanes run: 0 as they are numbered, 1 the reverse, else some other. A
  // right kernel does not depend on it.
  unsigned seed;
  unsigned workers = 1;  // threads of the host that share the groups
};

// Runs the whole grid. Returns what the kernel did wrong, or null.
const char* run_grid(const LaunchShape& shape, void (*body)(void* argument), void* argument);

// ---- what the body may call ----

// These do not change while a thread of the grid runs, so a compiler may keep what they return.
[[gnu::const]] unsigned thread_in_group();
[[gnu::const]] unsigned group_index(unsigned axis);
[[gnu::const]] unsigned group_count(unsigned axis);  // of the grid
[[gnu::const]] const void* argument_block();
void meet_group();

// The lanes of one wave at a wave operation. Lanes that have ended, or that the group lacks, have in == null.
struct Wave {
  unsigned size;
  const void* in[kMaxWave];
  void* out[kMaxWave];
  const char* fault;  // set by a function that finds something wrong
};
using WaveFunction = void (*)(Wave& wave);
void meet_wave(WaveFunction function, const void* in, void* out);

// value as lane `byte_address / 4` holds it: ds_bpermute. Ended lanes give 0.
int shuffle_from(int byte_address, int value);

// The values of a whole wave joined in pairs: neighbours, then neighbouring pairs, and so on.
template <class Join, class T>
void join_wave(Wave& wave) {
  T values[kMaxWave];
  for (unsigned i = 0; i < wave.size; ++i) {
    if (!wave.in[i]) {
      wave.fault = "lanes are absent where a wave joins its values";
      return;
    }
    values[i] = *static_cast<const T*>(wave.in[i]);
  }
  for (unsigned count = wave.size / 2; count > 0; count /= 2)
    for (unsigned i = 0; i < count; ++i) values[i] = Join::of(values[2 * i], values[2 * i + 1]);
  for (unsigned i = 0; i < wave.size; ++i) *static_cast<T*>(wave.out[i]) = values[0];
}

}  // namespace mock_hip
