// Calls of greta_compute.h in any order, with handles that are open, closed or of others, and odd numbers,
// shapes and structs. What must hold: each gives a status of the header, with a sentence where it fails;
// nothing is an internal error or a lost device; a norm on the side is right after all of them; and when all
// is closed, no buffer is left.
//
// Input: for each call a byte that chooses it, then its arguments (api_tape.h).
#include "compute_tape.h"

using namespace greta::fuzz;

namespace {

constexpr int kMostCalls = 60;

uint8_t host_bytes[kMostBytes];

greta_runtime* open_runtime() {
  Odd<greta_runtime_options> options;
  options->device = "cpu";
  options->threads = 1;
  greta_runtime* runtime = nullptr;
  must(greta_runtime_open(&options.value, &runtime));
  return runtime;
}

struct Run : ComputeTape {
  using ComputeTape::ComputeTape;

  void step() {
    const greta_stream stream = streams.pick(tape);
    const greta_step old = steps.pick(tape);
    Odd<greta_step_options> options;
    greta_step made;
    greta_row list[8];
    uint32_t pages[4];
    Odd<greta_draw> draw;
    switch (tape.below(6)) {
      case 3:
        draw->temperature = tape.below(2), draw->top_k = tape.below(5);
        ok(greta_step_draw(compute, stream, old, tape.below(4), draw.change(tape)));
        return;
      case 0:
        options->rows = tape.below(8) ? 1 + tape.below(6) : uint32_t(tape.number());
        options->sequences = 1 + tape.below(3), options->positions = 1 + tape.below(70);
        options->pages = tape.below(3);
        if (ok(greta_step_open(compute, options.change(tape), &made))) steps.keep(made);
        return;
      case 1:
        for (greta_row& row : list) row = {tape.below(70), tape.below(66), tape.below(3), tape.below(2)};
        ok(greta_step_set(compute, stream, old, list, tape.below(9)));
        return;
      case 2:
        for (uint32_t& page : pages) page = tape.below(3);
        ok(greta_step_pages(compute, stream, old, tape.below(3), tape.below(4), pages, tape.below(5)));
        return;
      default:
        ok(greta_stream_step(compute, stream, tape.below(3) ? old : greta_step{}));
    }
  }
  void open_buffer() {
    Odd<greta_buffer_options> options;
    greta_buffer buffer;
    options->bytes = tape.below(4) ? kMostBytes / (1 + tape.below(4)) : std::min(bytes(), kMostBytes);
    options->memory = greta_memory(tape.below(5) ? 0 : tape.below(4));
    if (!tape.below(8)) options.change(tape);
    options->bytes = std::min(options->bytes, kMostBytes);
    if (ok(greta_buffer_open(compute, &options.value, &buffer))) buffers.keep(buffer);
  }
  template <class Call, class Check, class Scratch, class Record>
  void operate(Odd<Call>& call, Check check, Scratch scratch, Record record) {
    uint64_t wanted = 0;
    if (!tape.below(6)) call.change(tape);
    const bool fits = ok(check(compute, &call.value));
    if (ok(scratch(compute, &call.value, &wanted)) != fits) __builtin_trap();
    greta_buffer memory = buffers.pick(tape);
    uint64_t at = tape.below(2) ? 0 : offset();
    if (fits && wanted && wanted <= kMostBytes && tape.below(3)) {
      Odd<greta_buffer_options> options;
      options->bytes = wanted;
      at = 0;
      if (ok(greta_buffer_open(compute, &options.value, &memory))) buffers.keep(memory);
    }
    const bool done = ok(record(compute, streams.pick(tape), &call.value, memory, at));
    if (done && !fits) __builtin_trap();
  }
  static greta_tensor integers(greta_tensor of) {
    of.type = GRETA_TYPE_I32;
    return of;
  }
  void expert_operation() {
    const uint64_t experts = 1 + tape.below(4), used = 1 + tape.below(2);
    const greta_tensor ids = integers(tensor(2, used));
    switch (tape.below(3)) {
      case 0: {
        Odd<greta_route_call> call;
        call->logits = tensor(2, experts), call->ids = ids, call->weights = tensor(2, used);
        call->groups = tape.below(3), call->normalise = tape.below(2);
        return operate(call, greta_route_check, greta_route_scratch, greta_route);
      }
      case 1: {
        Odd<greta_expert_linear_call> call;
        call->experts = uint32_t(experts), call->weights = weights(), call->ids = ids;
        call->x = tensor(), call->y = tensor(3, inner), call->y.shape[1] = used;
        return operate(call, greta_expert_linear_check, greta_expert_linear_scratch, greta_expert_linear);
      }
      default: {
        Odd<greta_combine_call> call;
        call->x = tensor(3), call->weights = tensor(2, 2), call->y = tensor();
        return operate(call, greta_combine_check, greta_combine_scratch, greta_combine);
      }
    }
  }
  // Of those that want a step.
  void step_operation() {
    switch (tape.below(4)) {
      case 2: {
        Odd<greta_sample_call> call;
        call->logits = tensor(), call->drawn = integers(tensor(2, 16)), call->drawn.shape[0] = 3;
        return operate(call, greta_sample_check, greta_sample_scratch, greta_sample);
      }
      case 0: {
        Odd<greta_embed_call> call;
        call->table = weights(), call->y = tensor();
        return operate(call, greta_embed_check, greta_embed_scratch, greta_embed);
      }
      case 1: {
        Odd<greta_kv_write_call> call;
        call->x = tensor(3), call->cache = cache();
        return operate(call, greta_kv_write_check, greta_kv_write_scratch, greta_kv_write);
      }
      default: {
        Odd<greta_attention_call> call;
        call->q = tensor(3), call->y = tensor(3), call->keys = cache(), call->values = cache();
        call->window = tape.below(3), call->cap = tape.below(3) ? 0 : tape.real();
        return operate(call, greta_attention_check, greta_attention_scratch, greta_attention);
      }
    }
  }
  void softcap() {
    Odd<greta_softcap_call> call;
    call->x = tensor(), call->y = tape.below(2) ? call->x : tensor(),
    call->cap = tape.below(2) ? 0 : tape.real();
    return operate(call, greta_softcap_check, greta_softcap_scratch, greta_softcap);
  }
  void cast() {
    static constexpr uint32_t kTypes[] = {GRETA_TYPE_F32, GRETA_TYPE_F16, GRETA_TYPE_BF16, GRETA_TYPE_I32};
    Odd<greta_cast_call> call;
    call->x = tensor(), call->y = tensor();
    call->x.type = kTypes[tape.below(4)], call->y.type = kTypes[tape.below(4)];
    return operate(call, greta_cast_check, greta_cast_scratch, greta_cast);
  }
  void gemm() {
    static constexpr uint32_t kTypes[] = {GRETA_TYPE_F32, GRETA_TYPE_F16, GRETA_TYPE_BF16, GRETA_TYPE_I32};
    Odd<greta_gemm_call> call;
    const uint32_t type = kTypes[tape.below(4)], rank = 2 + tape.below(2);
    call->a_transposed = tape.below(2), call->b_transposed = tape.below(8) ? tape.below(2) : 2;
    call->alpha = tape.below(4) ? 1 : tape.real(), call->beta = tape.below(2) ? 0 : tape.real();
    const auto matrix = [&](uint64_t m, uint64_t n) {
      greta_tensor made = tensor(rank, n);
      if (tape.below(12)) made.shape[rank - 2] = m, made.shape[rank - 1] = n;
      if (rank == 3 && tape.below(12)) made.shape[0] = tape.below(3) ? 2 : 1;
      if (tape.below(12)) std::fill_n(made.strides, 4, 0);
      made.type = type;
      return made;
    };
    call->a = call->a_transposed ? matrix(width, rows) : matrix(rows, width);
    call->b = call->b_transposed ? matrix(inner, width) : matrix(width, inner);
    call->y = matrix(rows, inner);
    if (tape.below(2)) call->y.type = GRETA_TYPE_F32;
    return operate(call, greta_gemm_check, greta_gemm_scratch, greta_gemm);
  }
  // Weights of 4 bits in groups, whose sizes are right or odd.
  void groups() {
    static uint8_t out[kMostBytes];
    Odd<greta_groups> given;
    const uint64_t n = tape.below(8) ? 8 * (1 + tape.below(2)) : dimension();
    const uint64_t depth = 32 * (1 + tape.below(4));
    uint32_t type = 2 + 4 * tape.below(2);
    given->order = greta_group_order(tape.below(5));
    given->n = n, given->depth = tape.below(8) ? depth : tape.number();
    given->group = tape.below(8) ? 32 << tape.below(3) : uint32_t(tape.number());
    given->scale_type = tape.below(8) ? GRETA_TYPE_F16 : GRETA_TYPE_BF16;
    given->quants = given->scales = host_bytes;
    given->quant_bytes = tape.below(8) ? n * depth / 2 : tape.number();
    given->scale_bytes = tape.below(8) && given->group ? n * (depth / given->group) * 2 : tape.number();
    if (tape.below(2)) given->zeros = host_bytes, given->zero_bytes = (n + 7) / 8 * (depth / 32) * 4;
    greta_groups* const changed = given.change(tape);
    if (std::max({given->quant_bytes, given->scale_bytes, given->zero_bytes}) > kMostBytes)
      given->quants = nullptr;  // so many bytes are not there
    ok(greta_groups_type(changed, &type));
    const uint64_t rows_bytes = depth / 32 * (type == 2 ? 18 : 22);
    ok(greta_groups_write(&given.value, type, tape.below(3), 1, out,
                          tape.below(8) ? rows_bytes : std::min(tape.number(), kMostBytes)));
  }
  void softmax() {
    Odd<greta_softmax_call> call;
    call->x = tensor(3), call->y = tape.below(2) ? call->x : tensor(3);
    call->logarithm = tape.below(8) ? tape.below(2) : uint32_t(tape.number());
    call->cap = tape.below(3) ? 0 : tape.real();
    if (tape.below(2)) call->mask = tensor(3);
    if (tape.below(2)) call->sinks = tensor(2);
    for (greta_tensor* each : {&call->mask, &call->sinks}) {
      std::fill_n(each->strides, 4, 0);
      for (uint32_t d = 0; d < 2; ++d)
        if (tape.below(2)) each->shape[d] = 1;
    }
    return operate(call, greta_softmax_check, greta_softmax_scratch, greta_softmax);
  }
  void operation() {
    rows = 1 + tape.below(tape.below(8) ? 6 : 40), width = 4 * (1 + tape.below(8)),
    inner = 1 + tape.below(12);
    if (tape.below(2)) width = 32;
    switch (tape.below(11)) {
      case 0: {
        Odd<greta_linear_call> call;
        call->weights = weights(), call->x = tensor(), call->y = tensor(2, inner);
        if (!tape.below(3)) call->bias = tensor(1, inner);
        call->outputs = !tape.below(4);
        return operate(call, greta_linear_check, greta_linear_scratch, greta_linear);
      }
      case 1: {
        Odd<greta_rms_norm_call> call;
        call->x = tensor(), call->y = tape.below(2) ? call->x : tensor(), call->gain = tensor(1);
        call->epsilon = tape.below(4) ? 1e-5f : tape.real();
        return operate(call, greta_rms_norm_check, greta_rms_norm_scratch, greta_rms_norm);
      }
      case 2: {
        Odd<greta_layer_norm_call> call;
        call->x = tensor(), call->y = tape.below(2) ? call->x : tensor();
        if (!tape.below(3)) call->gain = tensor(1), call->bias = tensor(1);
        call->epsilon = tape.below(4) ? 1e-5f : tape.real();
        return operate(call, greta_layer_norm_check, greta_layer_norm_scratch, greta_layer_norm);
      }
      case 3: {
        Odd<greta_rope_call> call;
        call->x = tensor(3), call->y = tape.below(2) ? call->x : tensor(3), call->table = tensor(3, 2);
        call->table.shape[0] = tape.below(8) ? rows + 3 : dimension();
        call->table.shape[1] = tape.below(8) ? width / 2 : dimension();
        std::fill_n(call->table.strides, 4, 0);
        call->first_position = tape.below(8) ? tape.below(4) : tape.number();
        return operate(call, greta_rope_check, greta_rope_scratch, greta_rope);
      }
      case 4: {
        Odd<greta_add_call> call;
        call->a = tensor(), call->b = tensor(), call->y = tape.below(2) ? call->a : tensor();
        return operate(call, greta_add_check, greta_add_scratch, greta_add);
      }
      case 5: {
        Odd<greta_gate_call> call;
        call->gate = tensor(), call->up = tensor(), call->y = tape.below(2) ? call->up : tensor();
        return operate(call, greta_gate_check, greta_gate_scratch, greta_gate);
      }
      case 6: {
        Odd<greta_multiply_call> call;
        call->x = tensor(), call->by = tape.below(2) ? call->x : tensor();
        call->y = tape.below(2) ? call->by : tensor(), call->factor = greta_factor(tape.below(8));
        return operate(call, greta_multiply_check, greta_multiply_scratch, greta_multiply);
      }
      case 7:
        return step_operation();
      case 8:
        return expert_operation();
      case 9:
        return tape.below(2) ? softmax() : cast();
      default:
        return tape.below(2) ? softcap() : gemm();
    }
  }
  void look() {
    Odd<greta_compute_info> info;
    Odd<greta_buffer_info> buffer;
    Odd<greta_graph_info> graph;
    static char text[64];
    size_t length;
    ok(greta_compute_describe(compute, info.change(tape)));
    ok(greta_buffer_describe(compute, buffers.pick(tape), buffer.change(tape)));
    ok(greta_graph_describe(compute, graphs.pick(tape), graph.change(tape)));
    ok(greta_graph_print(compute, graphs.pick(tape), text, sizeof text, &length));
  }
  void pack() {
    const greta_weights packed = weights();
    const greta_tensor y = tensor();
    if (tape.below(2))
      ok(greta_weights_pack(compute, streams.pick(tape), &packed, buffers.pick(tape), offset()));
    else
      ok(greta_weights_unpack(compute, streams.pick(tape), &packed, &y));
  }
  void copy() {
    const greta_stream stream = streams.pick(tape);
    const greta_buffer to = buffers.pick(tape), from = buffers.pick(tape);
    const uint64_t at = offset(), from_at = offset(), count = bytes();
    if (tape.below(3))
      ok(greta_stream_copy(compute, stream, to, at, from, from_at, count));
    else
      ok(greta_stream_fill(compute, stream, to, at, count, uint32_t(tape.number())));
  }
  void transfer() {
    const greta_buffer buffer = buffers.pick(tape);
    const uint64_t at = offset(), count = bytes();  // what is in a buffer fits into host_bytes
    ok(tape.below(2) ? greta_buffer_write(compute, buffer, at, host_bytes, count)
                     : greta_buffer_read(compute, buffer, at, host_bytes, count));
  }
  void time() {
    const greta_stream stream = streams.pick(tape);
    const greta_timeline timeline = timelines.pick(tape);
    const uint64_t value = tape.number();
    uint64_t ns;
    Odd<greta_timeline_options> options;
    greta_timeline made;
    switch (tape.below(6)) {
      case 0:
        if (ok(greta_timeline_open(compute, options.change(tape), &made))) timelines.keep(made);
        return;
      case 1:
        ok(greta_stream_wait_for(compute, stream, timeline, value));
        return;
      case 2:
        ok(greta_timeline_wait(compute, timeline, value));
        return;
      case 3:
        ok(greta_timeline_elapsed(compute, timeline, value, tape.number(), &ns));
        return;
      default:
        ok(greta_stream_signal(compute, stream, timeline, value));
    }
  }
  // With the last slots, as far as there are some.
  void run_graph(greta_stream stream, greta_graph graph, size_t count) {
    std::vector<greta_graph_binding> bindings(count);
    for (size_t i = 0; i < count; ++i)
      bindings[i] = {i < slots.size() ? slots[i] : buffers.pick(tape), buffers.pick(tape),
                     tape.below(3) ? 0 : uint64_t(256 * tape.below(3))};
    for (int i = 0; i < 2; ++i) ok(greta_graph_run(compute, stream, graph, bindings.data(), count));
  }
  void graph() {
    const greta_stream stream = streams.pick(tape);
    greta_buffer made;
    greta_graph ended;
    switch (tape.below(8)) {
      case 0:
        ok(greta_graph_drop(compute, stream));
        return;
      case 1:
      case 2:
        if (ok(greta_graph_temporary(compute, stream, std::min(bytes(), kMostBytes), &made)))
          buffers.keep(made);
        return;
      case 3:
        if (ok(greta_graph_slot(compute, stream, std::min(bytes(), kMostBytes), &made)))
          buffers.keep(made), slots.push_back(made);
        return;
      case 4:
        if (!ok(greta_graph_end(compute, stream, &ended))) return;
        graphs.keep(ended);
        return run_graph(stream, ended, slots.size());
      case 5:
        return run_graph(stream, graphs.pick(tape), tape.below(4));
      default:
        if (ok(greta_graph_begin(compute, stream))) slots.clear();
    }
  }
  void close() {
    switch (tape.below(5)) {
      case 4:
        ok(greta_step_close(compute, steps.pick(tape)));
        return;
      case 0:
        ok(greta_buffer_close(compute, buffers.pick(tape)));
        return;
      case 1:
        ok(greta_stream_close(compute, streams.pick(tape)));
        return;
      case 2:
        ok(greta_timeline_close(compute, timelines.pick(tape)));
        return;
      default:
        ok(greta_graph_close(compute, graphs.pick(tape)));
    }
  }
  void stream() {
    greta_stream made;
    const greta_stream old = streams.pick(tape);
    if (tape.below(3) == 0) {
      if (ok(greta_stream_open(compute, &made))) streams.keep(made);
    } else {
      ok(tape.below(2) ? greta_stream_wait(compute, old) : greta_stream_submit(compute, old));
    }
  }
  void call() {
    static constexpr void (Run::* kCalls[])() = {
        &Run::operation, &Run::operation, &Run::operation, &Run::open_buffer, &Run::copy,
        &Run::transfer,  &Run::time,      &Run::graph,     &Run::graph,       &Run::stream,
        &Run::close,     &Run::look,      &Run::pack,      &Run::step,        &Run::groups};
    (this->*kCalls[tape.below(std::size(kCalls))])();
  }
};

// A norm of equal values gives ones.
void check_norm(greta_compute* compute) {
  Odd<greta_buffer_options> options;
  Odd<greta_rms_norm_call> call;
  greta_buffer buffer;
  greta_stream stream;
  float values[32];
  options->bytes = sizeof values;
  std::fill_n(values, 32, 3.0f);
  std::fill_n(values + 16, 16, 1.0f);
  must(greta_stream_open(compute, &stream));
  must(greta_buffer_open(compute, &options.value, &buffer));
  must(greta_buffer_write(compute, buffer, 0, values, sizeof values));
  call->x.rank = call->gain.rank = 1;
  call->x.shape[0] = call->gain.shape[0] = 16;
  call->x.buffer = call->gain.buffer = buffer;
  call->gain.offset = 64;
  call->y = call->x;
  must(greta_rms_norm(compute, stream, &call.value, {}, 0));
  must(greta_stream_wait(compute, stream));
  must(greta_buffer_read(compute, buffer, 0, values, sizeof values));
  for (const float value : values)
    if (!(value > 0.9999f && value < 1.0001f)) __builtin_trap();
  must(greta_stream_close(compute, stream));
  must(greta_buffer_close(compute, buffer));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static greta_runtime* const runtime = open_runtime();
  Tape tape{data, size};
  Run run(tape);
  Odd<greta_compute_options> options;
  options->memory_limit_bytes = 64 << 20;
  must(greta_compute_open(runtime, &options.value, &run.compute));
  for (int i = 0; i < 2; ++i) {
    greta_stream stream;
    must(greta_stream_open(run.compute, &stream));
    run.streams.keep(stream);
  }
  for (int i = 0; i < 3; ++i) run.open_buffer();
  for (int i = 0; i < kMostCalls && tape.left; ++i) run.call();
  check_norm(run.compute);
  greta_compute_close(run.compute);
  return 0;
}
