#include "engine/executor/crossings.h"

#include <algorithm>
#include <cstring>

#include "engine/executor/memory.h"

namespace greta {

// A segment of a token takes about so long, and a thread that sleeps wakes tens of microseconds late.
constexpr uint64_t kPatienceNs = 2'000'000;

Crossings::~Crossings() {
  for (Gate& gate : gates_) on_.device(gate.device).destroy(gate.left);
}

Status Crossings::open() {
  for (uint32_t d = 0; d < on_.size(); ++d)
    if (needs_of(model_)[d].residual_crosses) GRETA_TRY(on_device(model_, d, allocate_residuals(d)));
  return {};
}

// Host memory for the residuals of the steps under way. Devices that can, share it, so that what one of them
// writes is where the next one reads it.
Status Crossings::allocate_residuals(uint32_t index) {
  Device& device = on_.device(index);
  Between& between = between_[index];
  const uint64_t bytes = kFlights * residual_bytes(model_.shape, plan_.step_tokens);
  if (device.info().shares_host) {
    if (!shared_.pages() && !shared_.map(bytes))
      return fail(Code::Memory, "there are no %llu bytes of host memory", (unsigned long long)bytes);
    const Status imported = between.comes.share_host(device, shared_.pages(), bytes);
    if (imported.ok() || imported.code == Code::Device) return imported;
    model_.log(LogLevel::Debug, "%s: what crosses is copied: %s", model_.devices[index].id, error_text());
    clear_error_text();
  }
  GRETA_TRY(between.comes.allocate(device, bytes, Memory::Upload));
  return between.goes.allocate(device, bytes, Memory::Readback);
}

// Host memory from which a step's residual comes to a device, or to which it goes.
Slice Crossings::residual_between(uint32_t device, bool goes, uint32_t tokens) const {
  const Between& between = between_[device];
  const DeviceMemory& memory = goes && between.goes.buffer().handle ? between.goes : between.comes;
  return memory.slice(flights_.next() * residual_bytes(model_.shape, plan_.step_tokens),
                      residual_bytes(model_.shape, tokens));
}

Status Crossings::receive(const Segment& segment, uint32_t tokens) {
  if (segment.arrives != Crossing::Residual) return {};
  const ExecutorOnDevice& on = on_[segment.device];
  const Slice from = residual_between(segment.device, false, tokens);
  GRETA_TRY(on.stream->barrier());
  return on.stream->copy(on.residual.slice(0, from.bytes), from);
}

Status Crossings::send(const Segment& segment, uint32_t tokens) {
  if (segment.leaves != Crossing::Residual) return {};
  const ExecutorOnDevice& on = on_[segment.device];
  const Slice to = residual_between(segment.device, true, tokens);
  GRETA_TRY(on.stream->barrier());
  return on.stream->copy(to, on.residual.slice(0, to.bytes));
}

void Crossings::hand_on(const Segment& segment, const Segment& next, uint32_t tokens) {
  const Slice from = residual_between(segment.device, true, tokens),
              to = residual_between(next.device, false, tokens);
  const auto* source = static_cast<const uint8_t*>(from.buffer->mapped) + from.offset;
  auto* target = static_cast<uint8_t*>(to.buffer->mapped) + to.offset;
  if (source != target) memcpy(target, source, from.bytes);
}

// Hands what a segment has left, and the host has waited for, to the next one. Residuals of the steps under
// way have places of their own. What the step before has handed to experts on the device of the output may
// not be read yet, unless it has ended.
Status Crossings::cross(const Segment& segment, const Segment& next, uint32_t tokens) {
  if (segment.leaves == Crossing::Residual) return hand_on(segment, next, tokens), Status{};
  const ExecutorOnDevice& from = on_[segment.device];
  const ExecutorOnDevice& to = on_[next.device];
  if (&to == &on_.ends()) GRETA_TRY(flights_.land_all());
  memcpy(to.arrives.buffer().mapped, from.leaves.buffer().mapped,
         uint64_t(tokens) * crossing_values(model_.shape, segment.leaves) * sizeof(float));
  return {};
}

Status Crossings::cross_behind(std::span<const Segment> segments, size_t index, uint32_t tokens) {
  const Segment& segment = segments[index];
  Stream& stream = *on_[segment.device].stream;
  if (segment.leaves == Crossing::Stays) return stream.barrier();
  GRETA_TRY(flights_.wait_for(0, [&] { return on_device(model_, segment.device, stream.wait()); }));
  return cross(segment, segments[index + 1], tokens);
}

Status Crossings::open_gates(std::span<const Segment> segments, bool has_head) {
  const auto crosses_alone = [](const Segment& s) {
    return s.ends() || s.leaves == Crossing::Residual;
  };
  const auto waits = [&](const Segment& s) { return on_.info(s.device).waits_for_host; };
  if (segments.size() < 2 || has_head || on_.has_processor() || !std::ranges::all_of(segments, waits) ||
      !std::ranges::all_of(segments, crosses_alone))
    return {};
  std::vector<Gate> gates;
  for (const Segment& segment : segments) gates.push_back({segment.device});
  gates_ = std::move(gates);
  for (Gate& gate : std::span(gates_).first(gates_.size() - 1))
    GRETA_TRY(on_device(model_, gate.device, on_.device(gate.device).create_event(&gate.left, false)));
  for (uint32_t d = 0; d < on_.size(); ++d)
    if (!on_.info(d).cpu_type) on_[d].stream->set_patience(kPatienceNs);
  return {};
}

Status Crossings::close_gate(size_t segment) {
  Gate& gate = gates_[segment];
  gate.number = ++between_[gate.device].gate;
  return on_[gate.device].stream->wait_for_host(gate.number);
}

Status Crossings::open_gate(size_t segment) {
  const Gate& gate = gates_[segment];
  return on_device(model_, gate.device, on_[gate.device].stream->let_go(gate.number));
}

Status Crossings::signal_left(size_t segment) {
  return on_[gates_[segment].device].stream->signal(gates_[segment].left);
}

Status Crossings::wait_left(size_t segment) {
  const Gate& gate = gates_[segment];
  return flights_.wait_for(
      0, [&] { return on_device(model_, gate.device, on_[gate.device].stream->wait(gate.left)); });
}

void Crossings::let_all_go() {
  for (uint32_t d = 0; d < on_.size(); ++d) (void)on_[d].stream->let_go(between_[d].gate);
  on_.drain_all();
}

}  // namespace greta
