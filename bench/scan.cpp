// greta-bench-scan [--device D] [HEADS GROUPS KEY_WIDTH VALUE_WIDTH]: times the rows of the kernel table that
// do the scan of the gated delta rule, alone or with what stands around it in decode, on the shape of
// Qwen 3.5 27B or another one: steps of 1, 16 and 64 sequences, and prompts.
//
// The launches of a round have states of their own, so that no cache holds them. Launches are timed one after
// the other with a barrier between (`apart`), as a step has them, and without (`together`). Beside them
// copies of the bytes of the scan's states are timed in both ways, from and to such places. GB/s are of what
// comes in and what goes out, `together`. The last columns have the copies' time as a share of the launches'.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "kernels/abi/scan.h"
#include "runtime/backends.h"
#include "tune/harness.h"

namespace greta {
namespace {

constexpr uint32_t kConvWidth = 4;

struct Shape {
  uint32_t heads = 48, groups = 16, key_width = 128, value_width = 128;
  uint32_t keys() const { return groups * key_width; }
  uint32_t values() const { return heads * value_width; }
  uint32_t channels() const { return 2 * keys() + values(); }
  uint32_t conv_state() const { return uint32_t(conv_state_values(channels(), kConvWidth)); }
  uint32_t state() const { return uint32_t(scan_state_values(heads, key_width, value_width)); }
};

// Runs of a step, each with as many rows.
struct Rows {
  uint32_t runs, of_each, bucket;
};

Slice behind(const Slice& slice, uint64_t floats) {
  return {slice.buffer, slice.offset + floats * 4, slice.bytes - floats * 4};
}

class Bench {
 public:
  Status open(const char* name, const Shape& shape) {
    shape_ = shape;
    Device* opened = nullptr;
    GRETA_TRY(open_device(name, {}, &opened));
    device_.reset(opened);
    harness_ = std::make_unique<Harness>(*device_);
    GRETA_TRY(harness_->open());
    Stream* stream = nullptr;
    GRETA_TRY(device_->create_stream(&stream));
    stream_.reset(stream);
    for (Event* event : {&from_, &to_}) GRETA_TRY(device_->create_event(event));
    printf("%s, %u heads of %u x %u in %u groups\n", device_->info().name, shape.heads, shape.key_width,
           shape.value_width, shape.groups);
    printf("%-12s %5s %5s %10s %10s %10s %10s %8s %8s\n", "row", "runs", "rows", "apart us", "together",
           "GB/s", "copy", "apart", "together");
    return {};
  }

  Status time(const Rows& rows) {
    harness_->reset();
    GRETA_TRY(put_step(rows));
    const uint64_t stride = round_up(shape_.conv_state() + shape_.state(), 4);
    GRETA_TRY(harness_->copies(stride * rows.runs * 4, rows.of_each == 1, &states_));
    GRETA_TRY(harness_->fill(states_.all, kSmall));
    uint64_t copy_ns[2];
    for (const Harness::Order order : {Harness::Order::Apart, Harness::Order::Together})
      GRETA_TRY(time_copy(uint64_t(rows.runs) * shape_.state() * 4, order, &copy_ns[int(order)]));
    const std::vector<Call> calls = make_calls(uint32_t(stride));
    const std::span<const Call> sequence = calls;
    for (const KernelRow& row : rows_of(device_->info().backend)) {
      if (!usable(row, harness_->filter()) || rows.bucket < row.tokens_min || rows.bucket > row.tokens_max)
        continue;
      for (const std::span<const Call> part : {sequence.subspan(1, 1), sequence})
        if (covers(row, part)) GRETA_TRY(time_row(row, part, rows, copy_ns));
    }
    return {};
  }

 private:
  static constexpr uint32_t kSmall = 0x3c003c00;  // 0.0078 as a float

  static bool covers(const KernelRow& row, std::span<const Call> calls) {
    if (row.op_count != calls.size()) return false;
    for (size_t i = 0; i < calls.size(); ++i)
      if (row.ops[i] != calls[i].op) return false;
    Reason why;
    return lead_of(calls).fits(calls, row, why);
  }

  Status room(uint64_t floats, Slice* out) {
    GRETA_TRY(harness_->room(floats * 4, out));
    return harness_->fill(*out, kSmall);
  }

  Status put_step(const Rows& rows) {
    auto step = std::make_unique<StepState>();
    auto runs = std::make_unique<StepRuns>();
    step->token_count = rows.runs * rows.of_each;
    runs->count = rows.runs;
    for (uint32_t r = 0; r < rows.runs; ++r) runs->run[r] = {r * rows.of_each, rows.of_each, r};
    for (uint32_t t = 0; t < step->token_count; ++t) {
      step->row[t].position = 64 + t % rows.of_each;
      runs->run_of[t] = t / rows.of_each;
    }
    GRETA_TRY(harness_->put(step.get(), sizeof *step, &step_));
    GRETA_TRY(harness_->put(runs.get(), sizeof *runs, &runs_));
    const uint64_t t = rows.bucket;
    GRETA_TRY(room(t * shape_.channels(), &x_));
    GRETA_TRY(room(t * shape_.channels(), &convolved_));
    GRETA_TRY(room(t * shape_.heads, &dt_));
    GRETA_TRY(room(t * shape_.values(), &gate_));
    GRETA_TRY(room(t * shape_.values(), &y_));
    GRETA_TRY(room(uint64_t(shape_.channels()) * kConvWidth, &weight_));
    GRETA_TRY(room(t * shape_.groups, &counters_));
    return harness_->fill(counters_, 0);
  }

  // conv1d, scan, norm and gate; the states are added later.
  std::vector<Call> make_calls(uint32_t stride) const {
    const CallMaker make{step_};
    const uint32_t keys = shape_.keys(), values = shape_.values(), channels = shape_.channels();
    Tensor weight, gain;
    weight.n = channels, weight.depth = kConvWidth, weight.slice = weight_;
    gain.n = 1, gain.depth = shape_.value_width, gain.slice = weight_;
    Call conv = make.conv1d(x_, weight, {}, true, convolved_, {}, runs_);
    conv.conv1d.state_stride = stride;
    Call::Scan scan{kScanDelta, shape_.heads, shape_.groups, shape_.key_width, shape_.value_width};
    scan.key_stride = scan.value_stride = channels;
    scan.state_stride = stride;
    scan.epsilon = 1e-6f;
    Call scanned = make.scan({convolved_, behind(convolved_, keys), behind(convolved_, 2 * keys), dt_, dt_,
                              weight_, weight_},
                             scan, y_, {}, runs_);
    scanned.slot[kCounters] = counters_;
    return {conv, scanned, make.norm(gain, y_, y_, 1e-5f, shape_.heads),
            make.gate(gate_, y_, y_, values, kActivationSilu)};
  }

  Status time_row(const KernelRow& row, std::span<const Call> part, const Rows& rows,
                  const uint64_t (&copy_ns)[2]) {
    std::vector<Call> calls(part.begin(), part.end());
    std::vector<Launch> launches(states_.count);
    for (uint64_t i = 0; i < states_.count; ++i) {
      for (Call& call : calls) {
        if (call.op == Op::Conv1d) call.slot[kPool] = states_[i];
        if (call.op == Op::Scan) call.slot[kPool] = behind(states_[i], shape_.conv_state());
      }
      GRETA_TRY(harness_->prepare(calls, row, rows.bucket, &launches[i]));
    }
    uint64_t ns[2];
    for (const Harness::Order order : {Harness::Order::Apart, Harness::Order::Together})
      GRETA_TRY(harness_->best_time(launches, order, &ns[int(order)], 8));
    const double moved = 2.0 * rows.runs * shape_.state() * 4;
    const double apart = double(ns[int(Harness::Order::Apart)]) / double(states_.count),
                 together = double(ns[int(Harness::Order::Together)]) / double(states_.count);
    const double copied = double(copy_ns[int(Harness::Order::Together)]);
    const double copied_apart = double(copy_ns[int(Harness::Order::Apart)]);
    printf("%-12s %5u %5u %10.1f %10.1f %10.0f %10.0f %7.0f%% %7.0f%%\n", row.name, rows.runs, rows.of_each,
           apart * 1e-3, together * 1e-3, moved / together, moved / copied, 100 * copied_apart / apart,
           100 * copied / together);
    return {};
  }

  // The time of a copy of `bytes` from one set of states to another, as the best of a few rounds.
  Status time_copy(uint64_t bytes, Harness::Order order, uint64_t* ns) {
    *ns = ~uint64_t(0);
    const uint64_t count = std::max<uint64_t>(states_.count / 2, 1);
    Slice other = states_[1];
    if (states_.count == 1) GRETA_TRY(harness_->room(bytes, &other));
    GRETA_TRY(harness_->finish());
    for (uint32_t round = 0; round < 20; ++round) {
      GRETA_TRY(stream_->signal(from_));
      for (uint64_t i = 0; i < count; ++i) {
        Slice to = states_.count == 1 ? other : states_[2 * i + 1], from = states_[2 * i];
        to.bytes = from.bytes = bytes;
        GRETA_TRY(stream_->copy(to, from));
        if (order == Harness::Order::Apart) GRETA_TRY(stream_->barrier());
      }
      GRETA_TRY(stream_->barrier());
      GRETA_TRY(stream_->signal(to_));
      GRETA_TRY(stream_->submit());
      GRETA_TRY(stream_->wait());
      uint64_t all = 0;
      GRETA_TRY(device_->elapsed_ns(from_, to_, &all));
      *ns = std::min(*ns, all / count);
    }
    return {};
  }

  Shape shape_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<Harness> harness_;  // dies before the device
  std::unique_ptr<Stream> stream_;
  Event from_, to_;
  Copies states_;
  Slice step_, runs_, x_, convolved_, dt_, gate_, y_, weight_, counters_;
};

Status run(const char* device, const Shape& shape) {
  Bench bench;
  GRETA_TRY(bench.open(device, shape));
  constexpr Rows kSteps[] = {{1, 1, 1},     {16, 1, 16},   {64, 1, 128},
                             {1, 128, 128}, {1, 512, 512}, {8, 64, 512}};
  for (const Rows& rows : kSteps) GRETA_TRY(bench.time(rows));
  return {};
}

}  // namespace
}  // namespace greta

int main(int count, char** words) {
  const char* device = "vulkan0";
  greta::Shape shape;
  int at = 1;
  if (count > 2 && !strcmp(words[1], "--device")) device = words[2], at = 3;
  if (count != at && count != at + 4) {
    fprintf(stderr, "greta-bench-scan [--device D] [HEADS GROUPS KEY_WIDTH VALUE_WIDTH]\n");
    return 2;
  }
  if (count > at) {
    uint32_t* const fields[] = {&shape.heads, &shape.groups, &shape.key_width, &shape.value_width};
    for (uint32_t* field : fields) *field = uint32_t(atoi(words[at++]));
  }
  if (greta::run(device, shape).ok()) return 0;
  fprintf(stderr, "%s\n", greta::error_text());
  return 1;
}
