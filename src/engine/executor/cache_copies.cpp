// Copies pass in pieces, on the executor's own stream. Only positions that were written are copied: the rest
// of a last page may hold what another sequence left there.
#include "engine/executor/cache_copies.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace greta {

namespace {

// Frees the pages of what is being restored at its end.
struct GiveBack {
  Sequences& sequences;
  ~GiveBack() { sequences.give_back_spare(); }
};

uint32_t used_of_page(uint32_t positions, uint32_t index) {
  return std::min<uint32_t>(kPageTokens, positions - index * kPageTokens);
}

}  // namespace

uint32_t CacheCopies::first_saved(uint32_t layer, uint32_t positions, CacheForm form) const {
  return sequences_.first_saved(model_.shape.each[layer].window, positions, form);
}

uint64_t CacheCopies::bytes(uint32_t positions, CacheForm form) const {
  uint64_t bytes = 0;
  for (uint32_t l = 0; l < model_.shape.layers; ++l)
    bytes += on_.cache_of(l).page_bytes() / kPageTokens *
             (positions - first_saved(l, positions, form) * kPageTokens);
  if (positions && form == CacheForm::Windows) bytes += saved_state_bytes();
  return bytes;
}

uint64_t CacheCopies::saved_state_bytes() const {
  const RecurrentShape& state = model_.shape.recurrence;
  return (state.conv_values() + state.scan_values()) * sizeof(float) * model_.shape.recurrent_layers;
}

// A page of a layer is [kv_heads][kPageTokens] rows. A page that is not full uses each head's first rows.
// What the sequence has no page for is visited as a slice without a buffer.
Status CacheCopies::walk_cache(uint32_t sequence, uint32_t positions, CacheForm form,
                               const Spans& visit) const {
  uint32_t device = 0;  // of the layer
  const auto walk_page = [&](const Slice& pool, uint32_t page, uint64_t page_bytes, uint64_t heads,
                             uint32_t used) -> Status {
    const uint64_t head = page_bytes / heads;
    if (page == PagePool::kGone) return visit(device, {nullptr, 0, head / kPageTokens * used * heads});
    const uint64_t at = pool.offset + page * page_bytes;
    if (used == kPageTokens) return visit(device, {pool.buffer, at, page_bytes});
    for (uint32_t h = 0; h < heads; ++h)
      GRETA_TRY(visit(device, {pool.buffer, at + h * head, head / kPageTokens * used}));
    return {};
  };
  for (uint32_t i = 0; i < divide_up(positions, kPageTokens); ++i)
    for (uint32_t l = 0; l < model_.shape.layers; ++l) {
      const uint32_t heads = model_.shape.each[l].kv_heads;
      if (!model_.shape.each[l].keeps_cache() || i < first_saved(l, positions, form)) continue;
      const StepBuffers::Cache& layer = on_.cache_of(l);
      device = model_.placement.layer(l);
      const uint32_t used = used_of_page(positions, i);
      const uint32_t page = sequences_.pool(layer.group).table(sequence)[i];
      GRETA_TRY(walk_page(layer.keys, page, layer.key_page_bytes, heads, used));
      if (!layer.joined) GRETA_TRY(walk_page(layer.values, page, layer.value_page_bytes, heads, used));
    }
  return positions && sequences_.states() ? walk_state(sequences_.state(sequence), visit) : Status{};
}

Status CacheCopies::walk_state(uint32_t index, const Spans& visit) const {
  const RecurrentShape& shape = model_.shape.recurrence;
  for (uint32_t l = 0; l < model_.shape.layers; ++l) {
    if (!model_.shape.each[l].recurrent) continue;
    const Slice state = on_.state_of(l, index);
    const uint32_t device = model_.placement.layer(l);
    GRETA_TRY(visit(device, {state.buffer, state.offset, shape.conv_values() * sizeof(float)}));
    const uint64_t scan = state.offset + shape.scan_at() * sizeof(float);
    GRETA_TRY(visit(device, {state.buffer, scan, shape.scan_values() * sizeof(float)}));
  }
  return {};
}

Status CacheCopies::walk_log(uint32_t sequence, uint32_t positions, const Spans& visit) const {
  const std::span<const uint32_t> table = sequences_.pool(0).table(sequence);
  for (uint32_t i = 0; i < divide_up(positions, kPageTokens); ++i)
    GRETA_TRY(visit(model_.placement.output(),
                    on_.ends().token_log.slice(uint64_t(table[i]) * kPageTokens * sizeof(uint32_t),
                                           used_of_page(positions, i) * sizeof(uint32_t))));
  return {};
}

// Host memory of each device, through which the same range of a stream of bytes passes. The bytes of all
// devices come together in that of the first.
class CacheCopies::Pieces {
 public:
  explicit Pieces(CacheCopies& of) : of_(of), piece_(of.on_.size()) {}
  // Waits for submitted work before its host memory is freed, and abandons work that was only recorded.
  ~Pieces() { of_.on_.drain_all(); }
  Status allocate(uint64_t bytes, Memory memory) {
    for (uint32_t d = 0; d < piece_.size(); ++d)
      GRETA_TRY(on_device(of_.model_, d, piece_[d].allocate(of_.on_.device(d), bytes, memory)));
    return {};
  }
  uint8_t* host(uint32_t device) const { return static_cast<uint8_t*>(piece_[device].buffer().mapped); }
  Status copy_out(uint32_t device, const Slice& from, uint64_t at) {
    if (device) ranges_.push_back({device, at, from.bytes});
    return copy(device, piece_[device].slice(at, from.bytes), from);
  }
  // Behind ExecutorDevices::wait_all().
  void gather() {
    for (const Range& range : ranges_) memcpy(host(0) + range.at, host(range.device) + range.at, range.bytes);
    ranges_.clear();
  }
  Status copy_in(uint32_t device, const Slice& to, uint64_t at) {
    if (device) memcpy(host(device) + at, host(0) + at, to.bytes);
    return copy(device, to, piece_[device].slice(at, to.bytes));
  }

 private:
  struct Range {
    uint32_t device;
    uint64_t at, bytes;
  };
  Status copy(uint32_t device, const Slice& to, const Slice& from) {
    return on_device(of_.model_, device, of_.on_[device].stream->copy(to, from));
  }
  CacheCopies& of_;
  std::vector<DeviceMemory> piece_;  // by device
  std::vector<Range> ranges_;        // of the others, to be gathered
};

Status CacheCopies::save(uint32_t sequence, uint32_t positions, const CacheBytes& take) {
  const uint64_t capacity = std::min(kCachePieceBytes, bytes(positions, sequences_.cache_form()));
  if (capacity == 0) return {};
  Pieces pieces(*this);
  GRETA_TRY(pieces.allocate(capacity, Memory::Readback));
  if (!sequences_.can_save(sequence, positions))
    return fail(Code::Argument, "the cache has left position %u behind", positions - 1);
  uint64_t used = 0;
  const auto hand_over = [&]() -> Status {
    GRETA_TRY(on_.wait_all());
    pieces.gather();
    return take(pieces.host(0), std::exchange(used, 0));
  };
  const auto copy = [&](uint32_t device, Slice from) -> Status {
    while (from.bytes) {
      const uint64_t bytes = std::min(from.bytes, capacity - used);
      GRETA_TRY(pieces.copy_out(device, {from.buffer, from.offset, bytes}, used));
      from.offset += bytes, from.bytes -= bytes, used += bytes;
      if (used == capacity) GRETA_TRY(hand_over());
    }
    return {};
  };
  GRETA_TRY(on_.barrier());
  GRETA_TRY(walk_cache(sequence, positions, sequences_.cache_form(), copy));
  return used ? hand_over() : Status{};
}

Status CacheCopies::load_pages(const Walk& walk, uint64_t bytes, const CacheBytes& fill) {
  const uint64_t capacity = std::min(kCachePieceBytes, bytes);
  if (capacity == 0) return {};
  Pieces pieces(*this);
  GRETA_TRY(pieces.allocate(capacity, Memory::Upload));
  uint64_t at = 0, filled = 0, left = bytes;
  GRETA_TRY(on_.barrier());  // a step may still write to pages that its sequence no longer has
  GRETA_TRY(walk([&](uint32_t device, Slice to) -> Status {
    while (to.bytes) {
      if (at == filled) {
        GRETA_TRY(on_.wait_all());
        filled = std::min(capacity, left);
        GRETA_TRY(fill(pieces.host(0), filled));
        at = 0, left -= filled;
      }
      const uint64_t count = std::min(to.bytes, filled - at);
      if (to.buffer) GRETA_TRY(pieces.copy_in(device, {to.buffer, to.offset, count}, at));
      to.offset += count, to.bytes -= count, at += count;
    }
    return {};
  }));
  return on_.wait_all();
}

Status CacheCopies::restore(uint32_t sequence, std::span<const int32_t> tokens, CacheForm form,
                               const CacheBytes& fill) {
  const uint32_t positions = uint32_t(tokens.size()), spare = sequences_.spare();
  const GiveBack give_back{sequences_};
  GRETA_TRY(sequences_.reserve_spare(positions));
  const auto cache = [&](const Spans& visit) { return walk_cache(spare, positions, form, visit); };
  GRETA_TRY(load_pages(cache, bytes(positions, form), fill));
  const int32_t* next = tokens.data();
  const auto log = [&](const Spans& visit) { return walk_log(spare, positions, visit); };
  GRETA_TRY(load_pages(log, tokens.size_bytes(), [&](uint8_t* to, uint64_t bytes) {
    memcpy(to, next, bytes);
    next += bytes / sizeof *next;
    return Status{};
  }));
  sequences_.take_spare(sequence, positions, form);
  return {};
}

uint64_t CacheCopies::page_bytes() const {
  const Shape& shape = model_.shape;
  const uint64_t head = shape.heads ? on_.cache_of(shape.layers).page_bytes() : 0;
  return bytes(kPageTokens, CacheForm::Whole) + head + kPageTokens * sizeof(uint32_t);
}

// All that the pools have of a page, in the order of save_page().
Status CacheCopies::walk_page(const CachePage& page, const Spans& visit) const {
  const auto in = [](const Slice& pool, uint32_t index, uint64_t bytes) {
    if (index == PagePool::kGone) return Slice{nullptr, 0, bytes};
    return Slice{pool.buffer, pool.offset + index * bytes, bytes};
  };
  for (uint32_t l = 0; l < model_.shape.cached_layers(); ++l) {
    const StepBuffers::Cache& layer = on_.cache_of(l);
    if (!layer.key_page_bytes) continue;
    const uint32_t index = layer.group ? page.window : page.full, device = model_.placement.layer(l);
    GRETA_TRY(visit(device, in(layer.keys, index, layer.key_page_bytes)));
    if (!layer.joined) GRETA_TRY(visit(device, in(layer.values, index, layer.value_page_bytes)));
  }
  return visit(model_.placement.output(),
               in(on_.ends().token_log.all(), page.full, kPageTokens * sizeof(uint32_t)));
}

// A step that fails later forgets what was only recorded, so copies are submitted at once. The host's memory
// is that of the first device; what the others have of the page passes through their own, and is waited for.
Status CacheCopies::copy_out(const Walk& walk, const Slice& to) {
  ExecutorDevices::Recordings recordings{on_};
  struct Part {
    uint32_t device;
    uint64_t from, to, bytes;
  };
  std::vector<Part> parts;
  std::vector<uint64_t> used(on_.size());
  uint64_t at = to.offset;
  GRETA_TRY(on_.barrier());
  GRETA_TRY(walk([&](uint32_t device, const Slice& from) -> Status {
    ExecutorOnDevice& on = on_[device];
    if (from.buffer && device == 0) GRETA_TRY(on.stream->copy({to.buffer, at, from.bytes}, from));
    if (from.buffer && device > 0) {
      GRETA_TRY(on_device(model_, device, on.stream->copy(on.leaves.slice(used[device], from.bytes), from)));
      parts.push_back({device, used[device], at, from.bytes});
      used[device] += from.bytes;
    }
    at += from.bytes;
    return {};
  }));
  GRETA_TRY(on_.barrier());  // the page's next user writes to it
  GRETA_TRY(on_device(model_, 0, on_[0].stream->submit()));
  for (uint32_t d = 1; d < on_.size(); ++d) GRETA_TRY(on_device(model_, d, on_[d].stream->wait()));
  for (const Part& part : parts)
    memcpy(static_cast<uint8_t*>(to.buffer->mapped) + part.to,
           static_cast<uint8_t*>(on_[part.device].leaves.buffer().mapped) + part.from, part.bytes);
  recordings.kept = true;
  return {};
}

Status CacheCopies::copy_in(const Slice& from, const Walk& walk) {
  ExecutorDevices::Recordings recordings{on_};
  std::vector<uint64_t> used(on_.size());
  for (uint32_t d = 1; d < on_.size(); ++d) GRETA_TRY(on_device(model_, d, on_[d].stream->wait()));
  uint64_t at = from.offset;
  GRETA_TRY(on_.barrier());  // a step may still write to the page for the one who had it before
  GRETA_TRY(walk([&](uint32_t device, const Slice& to) -> Status {
    ExecutorOnDevice& on = on_[device];
    if (to.buffer && device == 0) GRETA_TRY(on.stream->copy(to, {from.buffer, at, to.bytes}));
    if (to.buffer && device > 0) {
      const Slice piece = on.arrives.slice(used[device], to.bytes);
      memcpy(static_cast<uint8_t*>(piece.buffer->mapped) + piece.offset,
             static_cast<const uint8_t*>(from.buffer->mapped) + at, to.bytes);
      GRETA_TRY(on_device(model_, device, on.stream->copy(to, piece)));
      used[device] += to.bytes;
    }
    at += to.bytes;
    return {};
  }));
  GRETA_TRY(on_.barrier());
  GRETA_TRY(on_device(model_, 0, on_[0].stream->submit()));
  for (uint32_t d = 1; d < on_.size(); ++d) GRETA_TRY(on_device(model_, d, on_[d].stream->wait()));
  recordings.kept = true;
  return {};
}

Status CacheCopies::save_page(const CachePage& page, const Slice& to) {
  Span span(model_.spans, SpanKind::Copy, "save page");
  span.event.bytes = to.bytes;
  return copy_out([&](const Spans& visit) { return walk_page(page, visit); }, to);
}

Status CacheCopies::load_page(const Slice& from, const CachePage& page) {
  Span span(model_.spans, SpanKind::Copy, "load page");
  span.event.bytes = from.bytes;
  return copy_in(from, [&](const Spans& visit) { return walk_page(page, visit); });
}

Status CacheCopies::save_state(uint32_t state, const Slice& to) {
  Span span(model_.spans, SpanKind::Copy, "save state");
  span.event.bytes = to.bytes;
  return copy_out([&](const Spans& visit) { return walk_state(state, visit); }, to);
}

Status CacheCopies::load_state(const Slice& from, uint32_t state) {
  Span span(model_.spans, SpanKind::Copy, "load state");
  span.event.bytes = from.bytes;
  return copy_in(from, [&](const Spans& visit) { return walk_state(state, visit); });
}

Status CacheCopies::copy_shared() {
  const auto page = [](const Slice& pool, uint64_t index, uint64_t bytes) {
    return Slice{pool.buffer, pool.offset + index * bytes, bytes};
  };
  const auto copy_in = [&](ExecutorOnDevice& on, const Slice& pool, const PagePool::Copy& copy,
                           uint64_t bytes) {
    return on.stream->copy(page(pool, copy.to, bytes), page(pool, copy.from, bytes));
  };
  for (uint32_t g = 0; g < sequences_.groups(); ++g)
    for (const PagePool::Copy& copy : sequences_.copies(g)) {
      for (uint32_t l = 0; l < model_.shape.cached_layers(); ++l) {
        ExecutorOnDevice& on = on_[model_.placement.layer(l)];
        const StepBuffers::Cache& layer = on.buffers.cache[l];
        if (layer.group != g || !layer.key_page_bytes) continue;
        GRETA_TRY(copy_in(on, layer.keys, copy, layer.key_page_bytes));
        if (!layer.joined) GRETA_TRY(copy_in(on, layer.values, copy, layer.value_page_bytes));
      }
      if (g == 0)
        GRETA_TRY(copy_in(on_.ends(), on_.ends().token_log.all(), copy, kPageTokens * sizeof(uint32_t)));
    }
  for (const PagePool::Copy& copy : sequences_.state_copies())
    for (uint32_t l = 0; l < model_.shape.layers; ++l) {
      if (!model_.shape.each[l].recurrent) continue;
      Stream& stream = *on_[model_.placement.layer(l)].stream;
      GRETA_TRY(stream.copy(on_.state_of(l, copy.to), on_.state_of(l, copy.from)));
    }
  return {};
}

}  // namespace greta
