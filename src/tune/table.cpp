#include "tune/table.h"

#include <algorithm>
#include <cstring>

namespace greta {

KernelChoice candidate_of(const KernelRow& row, uint32_t splits) {
  return {row.name, row.target, row.tile, row.tile_tokens, splits};
}

bool names_row(const KernelChoice& candidate, const KernelRow& row) {
  return candidate.kernel == row.name && candidate.target == row.target && candidate.tile == row.tile &&
         candidate.tile_tokens == row.tile_tokens;
}

static constexpr const char* kVerdicts[] = {"right", "wrong", "refused", "slow", "hung"};
static_assert(std::size(kVerdicts) == size_t(KernelVerdict::count));
const char* verdict_name(KernelVerdict verdict) { return kVerdicts[size_t(verdict)]; }

std::string entry_key(std::span<const Call> calls, uint32_t bucket) {
  const Call& lead = lead_call(calls);
  std::string key;
  uint32_t head_width = 0;
  for (const Call& call : calls) {
    key += (key.empty() ? "" : "+") + std::string(op_name(call.op));
    if (call.op == Op::Rope || call.op == Op::KvWrite) head_width = call.width;
  }
  const Tensor& weight = lead.weight;
  char shape[128];
  format_text(shape, sizeof shape, " %s %s %ux%u", quant_info(weight.type).name, layout_name(weight.layout),
              weight.n, weight.depth);
  key += shape;
  if (head_width) key += " heads of " + std::to_string(head_width);
  if (lead.op == Op::MatmulExpert)
    key += " experts " + std::to_string(lead.experts.used) + "/" + std::to_string(lead.experts.count) + "/" +
           std::to_string(lead.matmul_expert.x_slots);
  return key + " rows " + std::to_string(bucket);
}

static std::string hex(uint64_t value) {
  char text[17];
  format_text(text, sizeof text, "%016llx", (unsigned long long)value);
  return text;
}

std::string kernels_checksum(const char* backend) {
  Checksum sum;
  const auto add = [&](const auto& value) { sum.add(&value, sizeof value); };
  const auto add_text = [&](const char* text) { sum.add(text, strlen(text) + 1); };
  for (const KernelRow& row : rows_of(backend)) {
    add_text(row.name);
    add_text(row.target);
    sum.add(row.ops, sizeof row.ops[0] * row.op_count);
    for (const uint32_t number :
         {row.needs, row.lacks, row.op_count, uint32_t(row.type), uint32_t(row.layout), uint32_t(row.form),
          row.tokens_min, row.tokens_max, row.n_multiple, row.depth_multiple, row.tile, row.tile_tokens,
          row.splits, row.shared_bytes, row.rank, row.expert_slots, row.product_clocks})
      add(number);
    add(row.code.group_size);
    sum.add(row.code.code.data(), row.code.code.size());
  }
  return hex(sum.value());
}

TableOf table_of(const DeviceInfo& info) {
  return {info.backend, info.name, info.arch, info.driver, info.unit_count, kernels_checksum(info.backend)};
}

static std::string checksum_of(std::initializer_list<std::string_view> texts) {
  Checksum sum;
  for (const std::string_view text : texts) {
    const uint64_t bytes = text.size();
    sum.add(&bytes, sizeof bytes);
    sum.add(text.data(), text.size());
  }
  return hex(sum.value());
}

std::string table_name_of_device(const TableOf& of) {
  return "tuning-" + of.backend + "-" + checksum_of({of.device, of.arch, std::to_string(of.units)}) + "-";
}

std::string table_name(const TableOf& of) {
  return table_name_of_device(of) + checksum_of({of.driver, of.kernels}) + ".jsonl";
}

// The largest k for which at most 1/40 of 2^n equally likely results have fewer than k heads in n throws: the
// k-th smallest and the k-th largest of n samples then hold the median between them with 95 % probability.
static uint32_t rank_of_limits(uint32_t n) {
  double below = 1, all = 1;  // of throws with fewer than k heads; binomial coefficients
  for (uint32_t i = 0; i < n; ++i) all *= 2;
  double coefficient = 1;
  uint32_t k = 0;
  while (below * 40 <= all) {
    ++k;
    coefficient = coefficient * double(n - k + 1) / double(k);
    below += coefficient;
  }
  return k;
}

bool ratio_of(std::span<const uint64_t> candidate, std::span<const uint64_t> of_default, Ratio* out) {
  const size_t rounds = std::min(candidate.size(), of_default.size());
  if (rounds < kFewestRounds) return false;
  std::vector<double> ratios(rounds);
  for (size_t i = 0; i < rounds; ++i)
    ratios[i] = double(candidate[i]) / double(std::max<uint64_t>(of_default[i], 1));
  std::ranges::sort(ratios);
  const uint32_t k = rank_of_limits(uint32_t(rounds));
  *out = {ratios[k - 1], (ratios[(rounds - 1) / 2] + ratios[rounds / 2]) / 2, ratios[rounds - k]};
  return true;
}

// Where the default is of no use there is nothing to compare with: the fastest of those that are right.
static size_t fastest(const TunedEntry& entry) {
  size_t best = 0;
  uint64_t best_ns = 0;
  for (size_t i = 1; i < entry.candidates.size(); ++i) {
    std::vector<uint64_t> ns = entry.candidates[i].ns;
    if (entry.candidates[i].verdict != KernelVerdict::Right || ns.size() < kFewestRounds) continue;
    std::ranges::sort(ns);
    const uint64_t median = ns[ns.size() / 2];
    if (best == 0 || median < best_ns) best = i, best_ns = median;
  }
  return best;
}

size_t choose_candidate(const TunedEntry& entry) {
  constexpr double kGain = 0.99, kSame = 1.01;
  if (entry.candidates.empty()) return 0;
  const Measured& first = entry.candidates[0];
  if (first.verdict != KernelVerdict::Right) return fastest(entry);
  std::vector<double> medians(entry.candidates.size(), 0);  // 0: it is not to be chosen
  double best = 0;
  for (size_t i = 1; i < entry.candidates.size(); ++i) {
    const Measured& other = entry.candidates[i];
    Ratio ratio;
    if (other.verdict != KernelVerdict::Right || !ratio_of(other.ns, first.ns, &ratio) || ratio.high > kGain)
      continue;
    medians[i] = ratio.median;
    if (best == 0 || ratio.median < best) best = ratio.median;
  }
  for (size_t i = 1; i < medians.size(); ++i)
    if (medians[i] > 0 && medians[i] <= best * kSame) return i;
  return 0;
}

void TuningTable::put(TunedEntry entry) {
  const size_t chosen = choose_candidate(entry);
  const auto [at, is_new] = places_.try_emplace(entry.key, Place{entries_.size(), chosen});
  at->second.chosen = chosen;
  if (is_new)
    entries_.push_back(std::move(entry));
  else
    entries_[at->second.entry] = std::move(entry);
}

const TunedEntry* TuningTable::entry(const std::string& key) const {
  const auto at = places_.find(key);
  return at == places_.end() ? nullptr : &entries_[at->second.entry];
}

const KernelChoice* TuningTable::find(std::span<const Call> calls, uint32_t bucket) const {
  if (empty()) return nullptr;
  const auto at = places_.find(entry_key(calls, bucket));
  if (at == places_.end()) return nullptr;
  const TunedEntry& entry = entries_[at->second.entry];
  return entry.candidates.empty() ? nullptr : &entry.candidates[at->second.chosen].candidate;
}

}  // namespace greta
