#include "selftest/rig.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace greta::selftest {

constexpr uint64_t kCanaryBytes = 256;
constexpr uint8_t kCanary = 0xcb;

// A lack of memory says nothing of a kernel.
static void must(Status status) {
  if (status.code == Code::Memory) throw std::bad_alloc();
  expect(status.ok(), error_text());
}

bool names_kernel(const std::string& pattern, const char* kernel) {
  if (!pattern.ends_with('*')) return pattern == kernel;
  return std::string_view(kernel).starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
}

Rig::Rig(Device& device, bool checked)
    : harness_(device, !checked), checked_(checked), ran_(kernel_table().size()) {
  must(harness_.open());
}

Rig::~Rig() {
  if (!harness_.finish().ok()) clear_error_text();  // the check has failed, and said why
}

const DeviceInfo& Rig::info() const { return harness_.info(); }

void Rig::reset() {
  must(harness_.finish());
  harness_.reset();
  canaries_.clear();
  had_.merge(running_);
  running_.clear();
}

Slice Rig::room(uint64_t bytes) {
  stop_if_asked();
  Slice whole;
  must(harness_.room(bytes + 2 * kCanaryBytes, &whole));
  const std::vector<uint8_t> canary(whole.bytes, kCanary);
  write(whole, canary.data());
  canaries_.push_back({whole.buffer, 0, kCanaryBytes});
  canaries_.push_back({whole.buffer, kCanaryBytes + bytes, kCanaryBytes});
  const Slice slice{whole.buffer, kCanaryBytes, bytes};
  poison(slice);
  return slice;
}

Slice Rig::put(const void* from, uint64_t bytes) {
  const Slice slice = room(bytes);
  write(slice, from);
  return slice;
}

Slice Rig::put_padded(std::vector<float> values, uint64_t count) {
  const uint32_t bits = 0x7fc12345;
  float nan;
  memcpy(&nan, &bits, sizeof nan);
  values.resize(count, nan);
  return put(values);
}

void Rig::poison(const Slice& slice) {
  const std::vector<uint8_t> ones(slice.bytes, 0xff);
  write(slice, ones.data());
}

void Rig::write(const Slice& slice, const void* from) { must(harness_.write(slice, from)); }
void Rig::read(std::span<const Slice> slices, void* to) { must(harness_.read(slices, to)); }

void Rig::check_canaries() {
  std::vector<uint8_t> bytes(canaries_.size() * kCanaryBytes);
  read(canaries_, bytes.data());
  const auto written = std::ranges::find_if(bytes, [](uint8_t byte) { return byte != kCanary; });
  if (written == bytes.end()) return;
  const bool after = (written - bytes.begin()) / kCanaryBytes % 2;
  throw Failed{after ? "bytes after a buffer were written" : "bytes before a buffer were written"};
}

std::vector<const KernelRow*> Rig::rows(std::span<const Call> calls, uint32_t bucket) const {
  const RowFilter filter = harness_.filter();
  std::vector<const KernelRow*> found(kernel_table().size());
  found.resize(find_rows(calls, bucket, filter, found));
  std::erase_if(found,
                [&](const KernelRow* row) { return !takes(*row) || had_.contains(turn_of(calls, *row)); });
  return found;
}

Rig::Turn Rig::turn_of(std::span<const Call> calls, const KernelRow& row) {
  uint32_t cache = 0;
  for (const Call& call : calls) {
    const uint32_t keys = std::max(call.kv_write.pages.type, call.attention.keys.type);
    cache = std::max(cache, keys << 8 | call.attention.values.type);
  }
  return {&row, cache};
}

bool Rig::left(Op op, QuantType type, Layout layout, uint32_t bucket) const {
  return std::ranges::any_of(kernel_table(), [&](const KernelRow& row) {
    return lead_op({row.ops, row.op_count}) == op && row.type == type && row.layout == layout &&
           row.tokens_min <= bucket && bucket <= row.tokens_max && takes(row) &&
           usable(row, {&info(), false}) && !had_.contains({&row, 0});
  });
}

std::vector<std::string> Rig::sequences(Op op) const {
  std::vector<std::string> found;
  for (const KernelRow& row : kernel_table()) {
    if (strcmp(row.backend, info().backend) || lead_op({row.ops, row.op_count}) != op) continue;
    std::string text = op_name(row.ops[0]);
    for (uint32_t i = 1; i < row.op_count; ++i) text += std::string("+") + op_name(row.ops[i]);
    if (std::ranges::find(found, text) == found.end()) found.push_back(text);
  }
  return found;
}

const KernelRow* Rig::plain_row(std::span<const Call> calls, uint32_t bucket) const {
  const RowFilter filter{&info(), true};
  const KernelRow* row = nullptr;
  return find_rows(calls, bucket, filter, {&row, 1}) ? row : nullptr;
}

KernelRow Rig::with_given_code(const KernelRow& row) {
  KernelRow given = row;
  given.code.name = given_names_.try_emplace(row.code.name, row.code.name).first->second.c_str();
  given.code.code = given_;
  return given;
}

void Rig::run(std::span<const Call> calls, const KernelRow& row, uint32_t bucket) {
  const size_t index = size_t(&row - kernel_table().data());
  if (watched_) watched_->kernel = row.name;
  stop_if_asked();
  Launch launch;
  const bool given = !given_.empty() && names_kernel(only_, row.name);
  must(harness_.prepare(calls, given ? with_given_code(row) : row, bucket, &launch));
  expect(launch.access_count < kMaxAccesses, "too many accesses");
  stop_if_asked();  // once more, since the driver may have compiled for seconds
  must(harness_.launch(launch));
  check_canaries();
  ++launches_;
  if (watched_) ++watched_->launches;
  if (watched_ && !ran_[index] && watched_->counted[index]) ++watched_->kernels;
  ran_[index] = true;
  if (quick_) running_.insert(turn_of(calls, row));
}

void Rig::run_plain(const Call& call, uint32_t bucket) {
  const KernelRow* row = plain_row({&call, 1}, bucket);
  expect(row, std::string(op_name(call.op)) + ": " + error_text());
  run({&call, 1}, *row, bucket);
}

void Rig::require_all_run(Op op) const {
  uint32_t led = 0;
  for (size_t i = 0; i < ran_.size(); ++i) {
    const KernelRow& row = kernel_table()[i];
    if (lead_op({row.ops, row.op_count}) != op || !takes(row) || !usable(row, {&info(), false})) continue;
    ++led;
    std::string sequence;
    for (uint32_t j = 0; j < row.op_count; ++j) sequence += std::string(j ? "+" : "") + op_name(row.ops[j]);
    expect(ran_[i], std::string("row ") + row.name + " of " + sequence + " did not run, tokens " +
                        std::to_string(row.tokens_min) + " to " + std::to_string(row.tokens_max));
  }
  expect(led > 0 || !only_.empty(), std::string("no row of ") + op_name(op));
}

StepRows::StepRows(uint32_t sequences, uint32_t pages)
    : sequences(sequences),
      pages(pages),
      table(size_t(sequences) * pages, ~0u),
      params(kMaxStepSequences),
      penalties(sequences),
      last_token(kMaxStepSequences, ~0u) {}

uint32_t StepRows::page(uint32_t sequence, uint32_t position) {
  expect(pool_pages() % 7 != 0, "pages are dealt in steps of 7");
  uint32_t& entry = table[size_t(sequence) * pages + position / kPageTokens];
  if (entry == ~0u) {
    // Gives out every page once, far from the one before, since 7 does not divide the count of pages.
    const uint32_t index = sequence * pages + position / kPageTokens;
    entry = (index * 7 + 3) % pool_pages();
  }
  return entry;
}

void StepRows::add(uint32_t token, uint32_t sequence, uint32_t position, bool output) {
  StepRow row = {token, position, sequence, kNoOutput};
  if (output) {
    row.output = uint32_t(outputs.size());
    outputs.push_back(uint32_t(rows.size()));
  }
  page(sequence, position);
  rows.push_back(row);
}

void StepRows::add_tokens(uint32_t count) {
  for (uint32_t t = 0; t < count; ++t) add(t, 0, t);
}

Slice StepRows::put(Rig& rig) const {
  const size_t table_bytes = table.size() * sizeof(uint32_t);
  const size_t penalties_bytes = penalties.size() * sizeof(SamplePenalties);
  const size_t prefixes_bytes = prefixes.size() * sizeof(SharedPrefixes);
  std::vector<uint8_t> bytes(sizeof(StepState) + table_bytes + penalties_bytes + prefixes_bytes, 0xff);
  StepState state;
  memset(&state, 0xff, sizeof state);
  state.token_count = uint32_t(rows.size());
  state.output_count = uint32_t(outputs.size());
  state.first_drawn = first_drawn;
  state.lone_count = lone_count;
  state.sequence_capacity = sequences;
  state.page_capacity = pages;
  std::copy(rows.begin(), rows.end(), state.row);
  std::copy(outputs.begin(), outputs.end(), state.output_row);
  std::copy(params.begin(), params.end(), state.sample);
  std::copy(last_token.begin(), last_token.end(), state.last_token);
  memcpy(bytes.data(), &state, sizeof state);
  memcpy(bytes.data() + sizeof state, table.data(), table_bytes);
  memcpy(bytes.data() + sizeof state + table_bytes, penalties.data(), penalties_bytes);
  if (prefixes_bytes) memcpy(bytes.data() + bytes.size() - prefixes_bytes, prefixes.data(), prefixes_bytes);
  return rig.put(bytes);
}

}  // namespace greta::selftest
