#include "engine/executor/shared_pages.h"

#include <algorithm>
#include <cstring>

namespace greta {

// By which kernels/vulkan/attention/prefix.h finds the prefixes.
static_assert(kStepStateWords * sizeof(uint32_t) == sizeof(StepState));
static_assert(2 * sizeof(uint32_t) == sizeof(SamplePenalties));

namespace {

// How many pages both begin with.
uint32_t common(std::span<const uint32_t> a, std::span<const uint32_t> b) {
  constexpr size_t kAtOnce = 64;
  const size_t most = std::min(a.size(), b.size());
  size_t at = 0;
  while (at + kAtOnce <= most && !memcmp(&a[at], &b[at], kAtOnce * sizeof a[0])) at += kAtOnce;
  while (at < most && a[at] == b[at]) ++at;
  return uint32_t(at);
}

bool comes_before(const SharingRow& a, const SharingRow& b) {
  const uint32_t same = common(a.pages, b.pages);
  if (same < std::min(a.pages.size(), b.pages.size())) return a.pages[same] < b.pages[same];
  return a.pages.size() != b.pages.size() ? a.pages.size() < b.pages.size() : a.row < b.row;
}

// Rows first .. last of the sorted ones, which begin with the same pages.
struct Run {
  size_t first = 0, last = 0;
  uint32_t pages = 0;
  uint32_t saved() const { return uint32_t(last - first) * pages; }
};

// The run that saves the most pages. `shared[i]` is how many pages rows i - 1 and i have in common.
Run best_run(std::span<const uint32_t> shared) {
  Run best;
  for (size_t first = 0; first < shared.size(); ++first) {
    uint32_t pages = ~0u;
    for (size_t last = first + 1; last < shared.size(); ++last) {
      pages = std::min(pages, shared[last]);
      if (pages < kMinPrefixPages) break;
      const Run run{first, last, pages};
      if (last - first + 1 >= kMinPrefixRows && run.saved() > best.saved()) best = run;
    }
  }
  return best;
}

void add_prefix(std::span<SharingRow> members, uint32_t pages, uint32_t first, SharedPrefixes* out) {
  std::ranges::sort(members, {}, &SharingRow::row);
  const uint32_t prefix = out->count++;
  out->prefix[prefix] = {pages, first, uint32_t(members.size()), members[0].sequence};
  for (uint32_t i = 0; i < members.size(); ++i) {
    out->member[first + i] = members[i].row;
    out->row[members[i].row] = {pages, prefix, i};
  }
}

}  // namespace

void find_shared_pages(std::vector<SharingRow>& rows, uint32_t pages_saved, SharedPrefixes* out) {
  memset(out, 0, sizeof *out);
  std::ranges::sort(rows, comes_before);
  std::vector<uint32_t> shared(rows.size(), 0);
  for (size_t i = 1; i < rows.size(); ++i) shared[i] = common(rows[i - 1].pages, rows[i].pages);
  for (uint32_t taken = 0; out->count < kMaxPrefixes;) {
    const Run run = best_run(shared);
    if (!run.pages || run.saved() < pages_saved) return;
    const size_t count = run.last - run.first + 1;
    add_prefix(std::span(rows).subspan(run.first, count), run.pages, taken, out);
    taken += uint32_t(count);
    // Its neighbours now stand side by side, with the pages that the whole run shares with both.
    const auto begin = shared.begin() + ptrdiff_t(run.first), end = begin + ptrdiff_t(count);
    if (end != shared.end()) *end = *std::min_element(begin, end + 1);
    rows.erase(rows.begin() + ptrdiff_t(run.first), rows.begin() + ptrdiff_t(run.last + 1));
    shared.erase(begin, end);
  }
}

}  // namespace greta
