// What was measured to be the fastest way to run given calls on one device: a table of entries, each with the
// samples of its candidates. The choice follows from the samples alone, so that it can be made again.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compute/compute.h"

namespace greta {

// How a sequence of calls may be run: a row of the kernel table, and the groups that share a tile of y.
struct KernelChoice {
  std::string kernel, target;  // KernelRow's; rows of one code differ in their tile
  uint32_t tile = 0, tile_tokens = 0, splits = 1;
  bool operator==(const KernelChoice&) const = default;
};
KernelChoice candidate_of(const KernelRow& row, uint32_t splits);
bool names_row(const KernelChoice& candidate, const KernelRow& row);

enum class KernelVerdict : uint8_t {
  Right,    // its result is that of the plain kernels
  Wrong,    // it is not
  Refused,  // the driver does not take its code
  Slow,     // one launch took much longer than the default's, so it was not timed again
  Hung,     // the device did not finish it, or the program ended while it ran
  count
};
const char* verdict_name(KernelVerdict verdict);  // "right"

struct Measured {
  KernelChoice candidate;
  KernelVerdict verdict = KernelVerdict::Right;
  std::string error;         // NMSE against the plain kernels: "1.2e-08"; "" if it was not computed
  std::vector<uint64_t> ns;  // of a launch, one sample for each round
  bool operator==(const Measured&) const = default;
};

struct TunedEntry {
  std::string key;                   // entry_key()
  uint64_t bytes = 0, flops = 0;     // of a launch
  std::vector<Measured> candidates;  // the first one is what was chosen without a table
  bool operator==(const TunedEntry&) const = default;
};

// Names what a choice is made for: ops, type, layout, shape and the bucket of tokens. Calls of one name are
// interchangeable for a table, and a row still has to cover them.
std::string entry_key(std::span<const Call> calls, uint32_t bucket);

// The ratio of a candidate's time to the default's, over the rounds that both ran in: its median, and the
// limits between which the median lies with 95 % probability (order statistics, no distribution is assumed).
struct Ratio {
  double low = 0, median = 0, high = 0;
};
constexpr uint32_t kFewestRounds = 6;  // fewer give no interval
bool ratio_of(std::span<const uint64_t> candidate, std::span<const uint64_t> of_default, Ratio* out);

// The candidate that is to run: the first one, unless the interval of another's ratio lies 1 % or more below
// it. Of several the one with the lowest median is taken, or the first of those within 1 % of that. If the
// first one is not right, it is the fastest of those that are.
size_t choose_candidate(const TunedEntry& entry);

// What a table is for. A table of anything else is not used.
struct TableOf {
  std::string backend, device, arch, driver;
  uint32_t units = 0;
  std::string kernels;  // the checksum of the backend's rows: kernels_checksum()
  bool operator==(const TableOf&) const = default;
};
TableOf table_of(const DeviceInfo& info);
std::string kernels_checksum(const char* backend);
// "tuning-vulkan-0123456789abcdef-0123456789abcdef.jsonl": the device, then its driver and kernels.
std::string table_name(const TableOf& of);
// The part of the name that all tables of this device begin with.
std::string table_name_of_device(const TableOf& of);

// It is not changed while others read it.
class TuningTable {
 public:
  TableOf of;

  const std::vector<TunedEntry>& entries() const { return entries_; }
  bool empty() const { return entries_.empty(); }
  // Adds an entry, or replaces that of its key.
  void put(TunedEntry entry);
  const TunedEntry* entry(const std::string& key) const;
  // The candidate that was chosen for the calls; null where there is no entry.
  const KernelChoice* find(std::span<const Call> calls, uint32_t bucket) const;

  // One object of JSON in each line: a head, entries with their candidates, and a checksum.
  std::string text() const;
  // Fails with Code::File, and says in which line, unless the whole text is such a table and undamaged.
  static Status read(std::string_view text, TuningTable* out);

 private:
  struct Place {
    size_t entry, chosen;
  };
  std::vector<TunedEntry> entries_;
  std::unordered_map<std::string, Place> places_;
};

}  // namespace greta
