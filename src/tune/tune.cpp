#include "tune/tune.h"

#include <algorithm>

namespace greta {

// "norm+matmul [4096][2048] q4_k", for the message that no row fits.
static void describe(std::span<const Call> calls, char* text, size_t bytes) {
  size_t used = 0;
  const Tensor* weight = nullptr;
  for (const Call& call : calls) {
    const int wrote = format_text(text + used, bytes - used, "%s%s", used ? "+" : "", op_name(call.op));
    if (wrote < 0 || size_t(wrote) >= bytes - used) return;
    used += size_t(wrote);
    if (call.weight.n && (!weight || call.op == Op::Matmul)) weight = &call.weight;
  }
  if (weight)
    format_text(text + used, bytes - used, " [%u][%u] %s%s%s", weight->n, weight->depth,
                quant_info(weight->type).name, weight->layout == Layout::Gguf ? "" : " ",
                weight->layout == Layout::Gguf ? "" : layout_name(weight->layout));
}

// A unit should have three groups with small tiles, or two with large ones. Groups that share a tile write at
// most kMostSums partial sums, because adding up more of them costs more than it gains (H200, 128 tokens,
// 4096 x 4096 in tiles of 128 x 128: 26 us with 4 groups for a tile, 29 with 6, 31 with 9).
constexpr uint32_t kSmallTile = 64 * 64, kMostSums = 65536;

uint32_t most_splits(const Call& call, const KernelRow& row, uint32_t bucket) {
  if (row.splits <= 1 || tile_count(call, row, bucket) > kCounterCount - kRouterCounters) return 1;
  const uint32_t blocks = uint32_t(divide_up(call.weight.depth, kTileColumns));
  return std::max(std::min({row.splits, blocks / 2, kMostSums / (row.tile * row.tile_tokens)}), 1u);
}

// What a table says of the calls; null: nothing, or nothing of such a row.
static const KernelChoice* tuned_for(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter) {
  return filter.tuned && !filter.exact ? filter.tuned->find(calls, bucket) : nullptr;
}

uint32_t choose_splits(std::span<const Call> calls, const KernelRow& row, uint32_t bucket,
                       const RowFilter& filter) {
  const Call& call = lead_call(calls);
  if (!filter.device || row.splits == 1) return 1;
  const uint32_t most = most_splits(call, row, bucket);
  const KernelChoice* tuned = tuned_for(calls, bucket, filter);
  if (tuned && names_row(*tuned, row)) return std::clamp(tuned->splits, 1u, most);
  const uint32_t tiles = tile_count(call, row, bucket), area = row.tile * row.tile_tokens,
                 together = area > kSmallTile ? 2 : 3;
  return std::clamp(filter.device->unit_count * together / tiles, 1u, most);
}

// Clocks that 256 columns of a row's tiles take on the busiest unit, by count: those of the matrix
// instructions, and 4 for each of the others, which decode the weights of the tile's rows and bring x of its
// tokens. For Q4_K there are about 180 / rows + 180 / tokens of these for each product of 16 x 16 x 16
// (docs/hip.md), so they take 45 clocks for each row and token. What hides behind other waves is counted too,
// and adding up partial sums is not.
static uint64_t clocks_of(const KernelRow& row, uint64_t groups, uint32_t splits, uint64_t units) {
  constexpr uint32_t kOthers = 45;
  const uint64_t products = row.tile * row.tile_tokens / 16,
                 clocks = products * row.product_clocks + kOthers * (row.tile + row.tile_tokens);
  return divide_up(groups, units) * clocks / splits;
}

// What the groups of a gemm take on the busiest unit, in products and what brings their operands. A group of
// a tile h x w brings h + w values for h * w products of them, and each value costs as much as kBringing
// products.
static uint64_t gemm_time(const KernelRow& row, std::span<const Call> calls, uint64_t units) {
  constexpr uint64_t kBringing = 32;
  uint32_t of[3];
  op_info(Op::Gemm).groups(calls, row, 1, of);
  const uint64_t high = row.tile, wide = row.tile_tokens;
  return divide_up(uint64_t(of[0]) * of[1] * of[2], units) * (high * wide + kBringing * (high + wide));
}

// Rows of one code differ in their tile. The best one computes the fewest tokens beyond the bucket; among
// equals it is the largest tile whose groups keep all units busy, else the one with the most groups. Of two
// codes the one whose tiles take fewer clocks is better, by count.
static bool fits_better(const KernelRow& a, const KernelRow& b, std::span<const Call> calls, uint32_t bucket,
                        const RowFilter& filter) {
  if (a.rank != b.rank || !a.tile_tokens || !b.tile_tokens) return a.rank > b.rank;
  const uint64_t units = filter.device ? filter.device->unit_count : 1;
  if (calls[0].op == Op::Gemm) return gemm_time(a, calls, units) < gemm_time(b, calls, units);
  const uint64_t tokens_a = round_up(bucket, a.tile_tokens), tokens_b = round_up(bucket, b.tile_tokens);
  if (tokens_a != tokens_b) return tokens_a < tokens_b;
  const auto splits = [&](const KernelRow& row) { return choose_splits(calls, row, bucket, filter); };
  const auto groups = [&](const KernelRow& row) {
    uint32_t of[3];
    lead_of(calls).groups(calls, row, bucket, of);
    return uint64_t(of[0]) * of[1] * splits(row);
  };
  const uint64_t of_a = groups(a), of_b = groups(b);
  if (!same_code(a, b)) return clocks_of(a, of_a, splits(a), units) < clocks_of(b, of_b, splits(b), units);
  if (of_a < units || of_b < units) return of_a > of_b;
  return a.tile * a.tile_tokens > b.tile * b.tile_tokens;
}

// A row that is gone or does not cover the calls is no answer: the table may be of another model.
static const KernelRow* tuned_row(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter) {
  const KernelChoice* tuned = tuned_for(calls, bucket, filter);
  if (!tuned) return nullptr;
  Reason unasked;
  for (const KernelRow& row : candidates(filter, calls))
    if (names_row(*tuned, row) && covers(row, calls, bucket, filter, unasked)) return &row;
  return nullptr;
}

const KernelRow* best_row(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter) {
  if (const KernelRow* row = tuned_row(calls, bucket, filter)) return row;
  Reason unasked;
  const KernelRow* best = nullptr;
  for (const KernelRow& row : candidates(filter, calls))
    if (covers(row, calls, bucket, filter, unasked) &&
        (!best || fits_better(row, *best, calls, bucket, filter)))
      best = &row;
  return best;
}

Status choose_row(std::span<const Call> calls, uint32_t bucket, const RowFilter& filter,
                  const KernelRow** out) {
  *out = best_row(calls, bucket, filter);
  if (*out) return {};
  char what[256] = "";
  describe(calls, what, sizeof what);
  Reason reason(true);
  for (const KernelRow& row : candidates(filter, calls)) covers(row, calls, bucket, filter, reason);
  const char* text = reason.text();
  const bool refused = filter.refused && filter.refused->any();
  return fail(Code::Unsupported, "%s for %u rows: no kernel of %s%s%s%s%s", what, bucket,
              filter.device ? filter.device->backend : "any backend", filter.exact ? ", exact," : "",
              text[0] ? " fits: " : " covers it", text,
              refused ? "; the driver refuses some, a newer one may take them" : "");
}

}  // namespace greta
