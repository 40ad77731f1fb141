// Finds the fastest way to run launches of a plan on a device, and notes it in a tuning table.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tune/harness.h"

namespace greta::selftest {

// A launch to be tuned. Slices of its calls only say which are the same memory.
struct Tunable {
  std::vector<Call> calls;
  uint32_t bucket = 1;
  uint64_t weight = 1;  // those of the largest come first
};

struct TuneProgress {
  const char* entry;   // entry_key()
  const char* kernel;  // at work; "" between two entries
  uint32_t done, entries;
};

struct TuneTally {
  uint32_t entries = 0;  // that are in the table now
  uint32_t made = 0;     // of them, those that this tune has made
  uint32_t there = 0;    // that were there before and were asked for again
  uint32_t changed = 0;  // of them, those that do not run their default
  uint32_t left = 0;     // that could not be tried, or for which no time was left
  uint32_t right = 0, wrong = 0, refused = 0, slow = 0, hung = 0;  // candidates of the new entries
};

struct TuneWork {
  uint64_t budget_ns = 0;  // 0: as long as it takes
  bool again = false;      // also entries that are in the table
  // Kernels that ended the program, or did not end, in an earlier run: they are listed and not tried.
  std::function<bool(const std::string& entry, const KernelChoice& choice)> hung = {};
  // Called before a candidate runs for the first time, and with null when it has.
  std::function<Status(const std::string& entry, const KernelChoice* choice)> trying = {};
  std::function<Status()> save = {};  // called after each entry, when it is in the table
  std::function<bool(const TuneProgress& now)> go_on = {};  // false: stop
};

// Tunes the launches one after the other. Fails with Cancelled if it was stopped; the table then has all
// entries that were finished.
Status tune(Device& device, const RefusedKernels* refused, std::vector<Tunable> launches,
            const TuneWork& work, TuningTable* table, TuneTally* tally);

// A product of this weight in a step of `tokens` rows, or two of them and their gate.
Tunable product_of(const Tensor& weight, bool gated, uint32_t tokens);
// Reads products of a text, one a line: "q4_k 14336x4096", or with "gate" behind it two of them and their
// gate.
Status read_shapes(const Device& device, const char* text, std::span<const uint32_t> tokens,
                   std::vector<Tunable>* out);

}  // namespace greta::selftest
