#include "selftest/trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace greta::selftest {

namespace {

constexpr uint64_t kPatternBytes = 4u << 20;   // of random blocks, which are repeated in a weight
constexpr size_t kGaussians = (1 << 18) + 3;   // values that operands repeat
constexpr uint64_t kMostRopeBytes = 2u << 20;  // of a table of rotations: kMaxStepTokens positions at least
constexpr uint64_t kMostWeightBytes = uint64_t(1) << 30;
constexpr uint32_t kPages = kMaxStepTokens / kPageTokens;
constexpr uint32_t kMostLaunches = 64;
// Launches are timed together until they take this long.
constexpr uint64_t kTimedNs = 1'000'000, kTimedNsOfProcessor = 2'000'000;
// What plain kernels compute of a result. They are slow, so large results are compared in their first rows.
constexpr uint64_t kProvenFlops = 20'000'000'000, kProvenFlopsOfProcessor = 300'000'000;

bool known(const Call& call) {
  switch (call.op) {
    case Op::Matmul:
    case Op::MatmulExpert:
      return !call.weight.parts && call.matmul_expert.first == 0;
    case Op::Norm:
    case Op::Add:
    case Op::Gate:
    case Op::Rope:
    case Op::Combine:
    case Op::Convert:
      return true;
    case Op::KvWrite:  // the result is compared in pages of floats
      return call.kv_write.pages.type < 2;
    default:
      return false;
  }
}

// How many values of x a product reads for a token, as the planner counts them.
uint32_t width_of_x(const Call& call) {
  const uint32_t depth = call.weight.depth;
  if (call.op != Op::MatmulExpert) return depth;
  return call.matmul_expert.x_slots * (call.x_stride ? call.x_stride : depth);
}

// Where the calls leave their result. A convert behind them only rounds it once more.
const Call& last_result(std::span<const Call> calls) {
  return calls.size() > 1 && calls.back().op == Op::Convert ? calls[calls.size() - 2] : calls.back();
}

Slice result_of(std::span<const Call> calls) {
  const Call& last = last_result(calls);
  return last.op == Op::KvWrite ? last.slot[kPool] : last.slot[kY];
}

bool in_halves(std::span<const Call> calls) {
  const Call& last = last_result(calls);
  return last.op == Op::KvWrite && last.kv_write.pages.type == 1;
}

enum class Holds : uint8_t { Floats, Zeros, Ids, Step };

Holds held_in(const Call& call, uint32_t slot) {
  if (slot == kStep) return Holds::Step;
  if (slot == kCounters || slot == kPool) return Holds::Zeros;
  return slot == kX2 && call.op == Op::MatmulExpert ? Holds::Ids : Holds::Floats;
}

// What a step of the bucket touches of a slice.
uint64_t touched(const Call& call, uint32_t slot, uint32_t bucket) {
  const uint64_t bytes = call.slot[slot].bytes;
  if (slot == kStep)
    return sizeof(StepState) + kPages * sizeof(uint32_t) + sizeof(SamplePenalties) + sizeof(SharedPrefixes);
  if (slot == kPool)
    return std::min<uint64_t>(bytes, call.kv_write.pages.bytes * divide_up(bucket, uint32_t(kPageTokens)));
  return slot == kTable ? std::min(bytes, kMostRopeBytes) : bytes;
}

}  // namespace

bool can_try(std::span<const Call> calls) {
  return multiplies(lead_call(calls).op) && std::ranges::all_of(calls, known);
}

std::vector<uint8_t> Trial::step(uint32_t live) const {
  std::vector<uint8_t> bytes(sizeof(StepState) + kPages * sizeof(uint32_t) + sizeof(SamplePenalties) +
                             sizeof(SharedPrefixes));
  StepState state = {};
  state.token_count = state.output_count = live;
  state.sequence_capacity = 1;
  state.page_capacity = kPages;
  for (uint32_t i = 0; i < live; ++i) {
    state.row[i] = {0, i, 0, i};
    state.output_row[i] = i;
  }
  memcpy(bytes.data(), &state, sizeof state);
  for (uint32_t i = 0; i < kPages; ++i) memcpy(&bytes[sizeof state + i * 4], &i, 4);
  return bytes;
}

Slice Trial::place(const Slice& slice, const std::vector<Region>& regions) const {
  for (const Region& region : regions)
    if (slice.buffer == region.of && slice.offset >= region.begin && slice.offset < region.end)
      return {region.slice.buffer, region.slice.offset + slice.offset - region.begin,
              std::min(slice.bytes, region.end - slice.offset)};
  return {};
}

std::vector<uint8_t> Trial::bytes_of(const Region& region) {
  Holds holds = Holds::Floats;
  uint32_t experts = 1, used = 1;
  for (const Call& call : calls_)
    for (uint32_t slot = 0; slot < kSlotCount; ++slot) {
      const Slice& slice = call.slot[slot];
      if (!slice.bytes || slice.buffer != region.of || slice.offset < region.begin ||
          slice.offset >= region.end || held_in(call, slot) == Holds::Floats)
        continue;
      holds = held_in(call, slot);
      experts = std::max(1u, call.experts.count);
      used = std::max(1u, call.experts.used);
    }
  if (holds == Holds::Step) return step(bucket_);
  std::vector<uint8_t> bytes(round_up(region.end - region.begin, 4));
  if (holds == Holds::Zeros) return bytes;
  // The experts of a token are different ones, and those of neighbouring tokens others.
  for (size_t i = 0; holds == Holds::Ids && i < bytes.size() / 4; ++i) {
    const uint32_t id = uint32_t((i / used * 7 + i % used * std::max(1u, experts / used)) % experts);
    memcpy(&bytes[i * 4], &id, 4);
  }
  if (holds == Holds::Ids) return bytes;
  if (gaussians_.empty())
    for (size_t i = 0; i < kGaussians; ++i) gaussians_.push_back(float(reference::gaussian(random_)));
  size_t from = random_() % kGaussians;  // operands differ
  for (size_t at = 0; at < bytes.size(); from = 0) {
    const size_t some = std::min((kGaussians - from) * sizeof(float), bytes.size() - at);
    memcpy(&bytes[at], &gaussians_[from], some);
    at += some;
  }
  return bytes;
}

// Slices that overlap in the plan overlap here, too.
Status Trial::make_regions() {
  std::vector<Region> parts;
  for (const Call& call : calls_)
    for (uint32_t slot = 0; slot < kSlotCount; ++slot)
      if (const Slice& slice = call.slot[slot]; slice.bytes)
        parts.push_back({slice.buffer, slice.offset, slice.offset + touched(call, slot, bucket_), {}, {}});
  std::ranges::sort(parts, [](const Region& a, const Region& b) {
    return a.of != b.of ? std::less<>()(a.of, b.of) : a.begin < b.begin;
  });
  for (Region& part : parts)
    if (!regions_.empty() && regions_.back().of == part.of && part.begin < regions_.back().end)
      regions_.back().end = std::max(regions_.back().end, part.end);
    else
      regions_.push_back(std::move(part));
  for (Region& region : regions_) {
    region.bytes = bytes_of(region);
    GRETA_TRY(harness_.put(region.bytes, &region.slice));
  }
  for (Call& call : calls_)
    for (Slice& slice : call.slot)
      if (slice.bytes) slice = place(slice, regions_);
  return {};
}

Status Trial::fill_weights(Tensor* tensor, Weights* out) {
  const reference::Quant& quant = *reference::find_quant(quant_info(tensor->type).name);
  const uint64_t bytes = quant_bytes(tensor->type, uint64_t(tensor->n) * tensor->depth) * tensor->count;
  if (bytes > kMostWeightBytes)
    return fail(Code::Unsupported, "a weight of %llu bytes", (unsigned long long)bytes);
  // An odd number of blocks, so that the rows of a matrix differ.
  const uint64_t blocks = std::min(bytes / quant.bytes, kPatternBytes / quant.bytes | 1);
  std::vector<uint8_t> pattern(blocks * quant.bytes);
  for (uint8_t& byte : pattern) byte = uint8_t(random_() >> 8);
  for (uint64_t b = 0; b < blocks; ++b)
    quant.resize(&pattern[b * quant.bytes], random_() % 2 ? 1 : 0.5, random_);
  GRETA_TRY(harness_.room(bytes, &out->gguf));
  for (uint64_t at = 0; at < bytes; at += pattern.size()) {
    const uint64_t some = std::min<uint64_t>(pattern.size(), bytes - at);
    GRETA_TRY(harness_.write({out->gguf.buffer, out->gguf.offset + at, some}, pattern.data()));
  }
  GRETA_TRY(
      harness_.copies(tensor_bytes(tensor->type, tensor->layout, tensor->n, tensor->depth, tensor->count),
                      cold_, &out->copies));
  tensor->slice = out->copies[0];
  GRETA_TRY(harness_.pack(out->gguf, *tensor));
  return harness_.repeat(out->copies);
}

Status Trial::make_weights() {
  for (Call& call : calls_) {
    Tensor& weight = call.weight;
    if (!weight.n) continue;
    weight.parts = nullptr;
    if (multiplies(call.op)) {
      GRETA_TRY(fill_weights(&weight, &weights_.emplace_back()));
      continue;
    }
    std::vector<float> gain(size_t(weight.n) * weight.depth);
    for (float& value : gain) value = 1 + 0.1f * float(reference::gaussian(random_));
    GRETA_TRY(harness_.put(gain, &weight.slice));
  }
  return {};
}

Status Trial::make(std::span<const Call> calls, uint32_t bucket, bool cold) {
  GRETA_TRY(harness_.finish());
  harness_.reset();
  regions_.clear();
  weights_.clear();
  calls_.assign(calls.begin(), calls.end());
  bucket_ = bucket;
  cold_ = cold;
  const Call& lead = lead_call(calls);
  const uint64_t most = harness_.info().cpu_type ? kProvenFlopsOfProcessor : kProvenFlops,
                 row_flops = 2 * uint64_t(lead.weight.n) * lead.weight.depth;
  proven_ = uint32_t(std::clamp<uint64_t>(most / std::max<uint64_t>(row_flops, 1), 1, bucket));
  GRETA_TRY(make_regions());
  GRETA_TRY(make_weights());
  plain_ = calls_;
  auto weights = weights_.begin();
  for (Call& call : plain_) {
    if (!multiplies(call.op)) continue;
    call.weight.layout = Layout::Gguf;
    call.weight.slice = (weights++)->gguf;
  }
  return run_plain();
}

Status Trial::renew(uint32_t live) {
  for (const Region& region : regions_) {
    const bool of_step = region.slice == calls_[0].slot[kStep];
    const std::vector<uint8_t> bytes = of_step ? step(live) : std::vector<uint8_t>();
    GRETA_TRY(harness_.write(region.slice, of_step ? bytes.data() : region.bytes.data()));
  }
  return {};
}

Status Trial::run_plain() {
  GRETA_TRY(renew(proven_));
  for (const Call& call : plain_) {
    if (&call != &plain_.front() && call.op == Op::Convert) break;
    const KernelRow* row = nullptr;
    GRETA_TRY(choose_row({&call, 1}, bucket_, {&harness_.info(), true}, &row));
    Launch launch;
    GRETA_TRY(harness_.prepare({&call, 1}, *row, bucket_, &launch));
    GRETA_TRY(harness_.launch(launch));
  }
  std::vector<float> result;
  GRETA_TRY(read_result(&result));
  expected_.assign(result.begin(), result.end());
  return {};
}

// The rows that are compared. Pages are compared as a whole: what is not written stays zero.
Status Trial::read_result(std::vector<float>* out) {
  const Call& last = last_result(calls_);
  Slice slice = result_of(calls_);
  if (last.op != Op::KvWrite) slice.bytes = slice.bytes / bucket_ * proven_ / 4 * 4;
  std::vector<uint8_t> bytes(slice.bytes);
  GRETA_TRY(harness_.read({&slice, 1}, bytes.data()));
  const bool halves = in_halves(calls_);
  out->resize(bytes.size() / (halves ? 2 : 4));
  for (size_t i = 0; i < out->size(); ++i)
    if (halves)
      (*out)[i] = reference::half_at(&bytes[i * 2]);
    else
      memcpy(&(*out)[i], &bytes[i * 4], 4);
  return {};
}

// As the planner does it: the row reads x in another form, which a launch before it makes.
Status Trial::convert_input(std::vector<Call>* calls, Form form, Attempt* out) {
  Call& first = calls->front();
  const bool norms = first.op == Op::Norm;
  const uint32_t width = width_of_x((*calls)[norms]);
  Slice converted;
  GRETA_TRY(harness_.room(form_row_bytes(form, width) * bucket_, &converted));
  Call convert = CallMaker{first.slot[kStep]}.convert(first.slot[kX], converted, form, width);
  convert.rows_of = first.rows_of;
  if (norms) convert.weight = first.weight;
  const KernelRow* row = nullptr;
  GRETA_TRY(choose_row({&convert, 1}, bucket_, harness_.filter(), &row));
  GRETA_TRY(harness_.prepare({&convert, 1}, *row, bucket_, &out->convert.emplace_back()));
  first.slot[kX] = converted;
  if (first.rows_of == kRowsGather) first.rows_of = kRowsOutputs;
  for (Call& call : *calls) {
    if (!multiplies(call.op)) continue;
    call.form = form;
    if (!norms) call.slot[kX] = converted;
  }
  return {};
}

Status Trial::prepare(const KernelRow& row, uint32_t splits, Attempt* out) {
  *out = {};
  out->row = row;
  std::vector<Call> calls = calls_;
  if (row.form != Form::F32 && calls[0].op != Op::Convert) GRETA_TRY(convert_input(&calls, row.form, out));
  for (Call& call : calls) {
    if (splits <= 1 || call.op != Op::Matmul) continue;
    call.matmul.splits = splits;
    GRETA_TRY(harness_.put(std::vector<uint32_t>(tile_count(call, row, bucket_)), &call.slot[kCounters]));
    GRETA_TRY(harness_.room(split_bytes(call, row, bucket_), &call.slot[kScratch]));
  }
  uint64_t copies = kMostLaunches;
  for (const Weights& weights : weights_) copies = std::min(copies, weights.copies.count);
  out->launches.resize(copies);
  for (uint64_t i = 0; i < copies; ++i) {
    auto weights = weights_.begin();
    for (Call& call : calls)
      if (multiplies(call.op)) call.weight.slice = (weights++)->copies[i];
    GRETA_TRY(harness_.prepare(calls, row, bucket_, &out->launches[i]));
  }
  return {};
}

Status Trial::prove(Attempt& attempt, double* error) {
  GRETA_TRY(renew(proven_));  // what is not written then differs from what is expected
  for (const Launch& convert : attempt.convert) GRETA_TRY(harness_.launch(convert));
  GRETA_TRY(harness_.launch(attempt.launches[0]));
  std::vector<float> y;
  GRETA_TRY(read_result(&y));
  double wrong = 0, size = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    wrong += (double(y[i]) - expected_[i]) * (double(y[i]) - expected_[i]);
    size += expected_[i] * expected_[i];
  }
  *error = size > 0 ? wrong / size : wrong;
  if (!std::isfinite(*error)) *error = HUGE_VAL;
  return renew(bucket_);
}

Status Trial::time(Attempt& attempt, uint64_t* ns) {
  const uint64_t wanted = harness_.info().cpu_type ? kTimedNsOfProcessor : kTimedNs;
  const auto run = [&](size_t count, uint64_t* took) {
    std::vector<Launch> launches;
    for (size_t i = 0; i < count; ++i) {
      if (attempt.pays) launches.insert(launches.end(), attempt.convert.begin(), attempt.convert.end());
      launches.push_back(attempt.launches[attempt.next++ % attempt.launches.size()]);
    }
    return harness_.time(launches, Harness::Order::Apart, took);
  };
  if (!attempt.timed) {
    uint64_t once = 0;
    GRETA_TRY(run(1, &once));
    attempt.timed = std::clamp<size_t>(size_t(wanted / once), 1, kMostLaunches);
  }
  GRETA_TRY(run(attempt.timed, ns));
  *ns = std::max<uint64_t>(*ns / attempt.timed, 1);
  return {};
}

}  // namespace greta::selftest
