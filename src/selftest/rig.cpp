#include "selftest/rig.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace greta::selftest {

constexpr uint64_t kCanaryBytes = 256;
constexpr uint8_t kCanary = 0xcb;
constexpr uint64_t kStagingBytes = 1 << 22;
constexpr uint64_t kStagingAlignment = 256;

// A lack of memory says nothing of a kernel.
static void must(Status status) {
  if (status.code == Code::Memory) throw std::bad_alloc();
  expect(status.ok(), error_text());
}

bool names_kernel(const std::string& pattern, const char* kernel) {
  if (!pattern.ends_with('*')) return pattern == kernel;
  return std::string_view(kernel).starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
}

struct Rig::Room {
  Buffer buffer;
  uint64_t bytes;
};

Rig::Rig(Device& device, bool checked)
    : device_(device),
      all_kernels_(device),
      kernels_(all_kernels_),
      checked_(checked),
      ran_(kernel_table().size()) {
  Stream* stream = nullptr;
  must(device.create_stream(&stream));
  stream_.reset(stream);
}

Rig::~Rig() {
  if (staged_ && !stream_->wait().ok()) clear_error_text();  // the check has failed, and said why
  staged_ = 0;
  reset();
  for (Buffer* staging : {&upload_, &readback_}) device_.release(*staging);
}

const DeviceInfo& Rig::info() const { return device_.info(); }

void Rig::reset() {
  if (staged_) finish();
  for (auto& room : rooms_) device_.release(room->buffer);
  rooms_.clear();
  had_.merge(running_);
  running_.clear();
}

Slice Rig::room(uint64_t bytes) {
  stop_if_asked();
  rooms_.push_back(std::make_unique<Room>());
  Room& room = *rooms_.back();
  room.bytes = bytes;
  must(device_.allocate(bytes + 2 * kCanaryBytes, Memory::Device, &room.buffer));
  const std::vector<uint8_t> canary(bytes + 2 * kCanaryBytes, kCanary);
  write({&room.buffer, 0, canary.size()}, canary.data());
  const Slice slice{&room.buffer, kCanaryBytes, bytes};
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

// Allocating host memory that a GPU reaches takes milliseconds, so the buffer is kept.
void Rig::grow(Buffer* staging, Memory memory, uint64_t bytes) {
  if (staging->bytes >= bytes) return;
  finish();
  device_.release(*staging);
  must(device_.allocate(std::max(bytes, kStagingBytes), memory, staging));
}

void Rig::finish() {
  must(stream_->wait());
  staged_ = 0;
}

// Writes at once, or records a copy that is submitted with the next launch or read, since a GPU takes longer
// for a submission than for a copy.
void Rig::write(const Slice& slice, const void* from) {
  if (!slice.bytes) return;
  if (reaches(slice)) {
    memcpy(static_cast<uint8_t*>(slice.buffer->mapped) + slice.offset, from, slice.bytes);
    return;
  }
  if (staged_ + slice.bytes > upload_.bytes) finish();
  grow(&upload_, Memory::Upload, slice.bytes);
  memcpy(static_cast<uint8_t*>(upload_.mapped) + staged_, from, slice.bytes);
  must(stream_->copy(slice, {&upload_, staged_, slice.bytes}));
  must(stream_->barrier());
  staged_ += round_up(slice.bytes, kStagingAlignment);
}

void Rig::read(const Slice& slice, void* to) {
  if (!slice.bytes) return;
  if (reaches(slice)) {
    memcpy(to, static_cast<const uint8_t*>(slice.buffer->mapped) + slice.offset, slice.bytes);
    return;
  }
  grow(&readback_, Memory::Readback, slice.bytes);
  must(stream_->copy({&readback_, 0, slice.bytes}, slice));
  finish();
  memcpy(to, readback_.mapped, slice.bytes);
}

// Reads all canaries with a single submission.
void Rig::check_canaries() {
  std::vector<Slice> canaries;
  for (const auto& room : rooms_)
    for (const uint64_t at : {uint64_t(0), kCanaryBytes + room->bytes})
      canaries.push_back({&room->buffer, at, kCanaryBytes});
  for (size_t i = 0; i < canaries.size(); ++i) {
    if (reaches(canaries[i])) continue;
    grow(&readback_, Memory::Readback, canaries.size() * kCanaryBytes);
    must(stream_->copy({&readback_, i * kCanaryBytes, kCanaryBytes}, canaries[i]));
  }
  finish();
  for (size_t i = 0; i < canaries.size(); ++i) {
    const Slice& canary = canaries[i];
    const uint8_t* bytes = reaches(canary)
                               ? static_cast<const uint8_t*>(canary.buffer->mapped) + canary.offset
                               : static_cast<const uint8_t*>(readback_.mapped) + i * kCanaryBytes;
    expect(std::all_of(bytes, bytes + kCanaryBytes, [](uint8_t byte) { return byte == kCanary; }),
           i % 2 ? "bytes after a buffer were written" : "bytes before a buffer were written");
  }
}

std::vector<const KernelRow*> Rig::rows(std::span<const Call> calls, uint32_t bucket) const {
  const RowFilter filter{&info(), false};
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

void Rig::run(std::span<const Call> calls, const KernelRow& row, uint32_t bucket) {
  Launch launch;
  make_launch(calls, row, bucket, &info(), &launch);
  expect(launch.access_count < kMaxAccesses, "too many accesses");
  const size_t index = size_t(&row - kernel_table().data());
  if (watched_) watched_->kernel = row.name;
  stop_if_asked();
  const Kernel* kernel = nullptr;
  must(kernels_.load(row, launch.fields(), &kernel));
  stop_if_asked();  // once more, since the driver may have compiled for seconds
  must(stream_->dispatch(*kernel, launch.groups, launch.arguments(), {launch.accesses, launch.access_count}));
  must(stream_->barrier());
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
