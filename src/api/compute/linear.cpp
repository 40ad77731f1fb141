// The functions of greta_compute.h for weights and their products.
#include "api/compute/work.h"

using namespace greta;

// y[rows][n] = x[rows][depth] . weights[n][depth] + bias[n]
static Status read_linear(const greta_compute& compute, const greta_linear_call& given, Work* work) {
  TensorView x, y, bias;
  bool outputs = false;
  GRETA_TRY(read_flag(given.outputs, "outputs", &outputs));
  RowsView of_x, of_y;
  Tensor weights;
  std::shared_ptr<BufferObject> weights_buffer;
  GRETA_TRY(read_weights(compute, given.weights, false, &weights_buffer, &weights));
  GRETA_TRY(read_values(compute, given.x, "x", &x));
  GRETA_TRY(read_values(compute, given.y, "y", &y));
  GRETA_TRY(read_vector(compute, given.bias, "bias", weights.n, true, &bias));
  GRETA_TRY(read_rows(x, &of_x));
  GRETA_TRY(read_rows(y, &of_y));
  GRETA_TRY(need_dense(x, of_x));
  GRETA_TRY(need_dense(y, of_y));
  if (x.width() != weights.depth || y.width() != weights.n ||
      of_x.rows * of_x.heads != of_y.rows * of_y.heads)
    return fail(Code::Argument,
                "linear: weights [%u][%u] take x of [rows][%u] to y of [rows][%u]; x has %llu rows of %llu, "
                "and y %llu of %llu",
                weights.n, weights.depth, weights.depth, weights.n, (unsigned long long)of_x.rows,
                (unsigned long long)x.width(), (unsigned long long)of_y.rows, (unsigned long long)y.width());
  TensorView as_bytes = x;  // the weights' place, for the check alone
  as_bytes.role = "weights";
  as_bytes.buffer = weights_buffer;
  as_bytes.slice = weights.slice;
  GRETA_TRY(need_apart(y, as_bytes, false));
  GRETA_TRY(need_apart(y, x, false));
  GRETA_TRY(need_apart(y, bias, false));
  work->call.op = Op::Matmul;
  work->call.weight = weights;
  work->use(weights_buffer);
  work->operand(kX, x, weights.depth);
  work->operand(kY, y, weights.n);
  work->operand(kBias, bias, 0);
  work->rows = of_x.rows * of_x.heads;
  work->counts_rows = true;
  work->needs_step = outputs;
  if (outputs) work->call.rows_of = kRowsGather;
  return {};
}

GRETA_OPERATION(linear)

greta_status greta_type_find(const char* name, uint32_t* out_type) {
  return fenced([&]() -> Status {
    GRETA_TRY(need(name, "name"));
    GRETA_TRY(need(out_type, "out_type"));
    QuantType type;
    const QuantInfo* const info = quant_from_name(name, &type);
    if (!info) return fail(Code::Argument, "there is no type \"%.100s\"", name);
    *out_type = info->gguf_id;
    return {};
  });
}

greta_status greta_weights_size(greta_compute* compute, uint32_t type, uint64_t n, uint64_t depth,
                                greta_weights* out_weights, uint64_t* out_bytes, uint64_t* out_source_bytes) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(out_weights, "out_weights"));
    GRETA_TRY(need(out_bytes, "out_bytes"));
    greta_weights made = {};
    made.type = type;
    made.n = n;
    made.depth = depth;
    Tensor tensor;
    GRETA_TRY(read_weights(*compute, made, true, nullptr, &tensor));
    tensor.layout = preferred_layout(tensor.type, compute->recipes.filter());
    made.layout = uint32_t(tensor.layout);
    const Call call = CallMaker{}.matmul(tensor, {}, {});
    const KernelRow* row = nullptr;
    GRETA_TRY(choose_row({&call, 1}, 1, compute->recipes.filter(), &row));
    *out_weights = made;
    *out_bytes = tensor_bytes(tensor.type, tensor.layout, tensor.n, tensor.depth, 1);
    if (out_source_bytes)
      *out_source_bytes = tensor_bytes(tensor.type, Layout::Gguf, tensor.n, tensor.depth, 1);
    return {};
  });
}

// Weights in GGUF order are copied, others packed by a kernel.
static Status record_pack(greta_compute& compute, StreamObject& stream, const Slice& from, const Tensor& to) {
  if (to.layout == Layout::Gguf) {
    return recorded(stream, [&]() -> Status {
      const Access accesses[] = {{from, Access::kRead}, {to.slice, Access::kWrite}};
      GRETA_TRY(stream.order(accesses));
      return stream.stream->copy(to.slice, from);
    });
  }
  const Call call = CallMaker{}.pack(from, to);
  std::shared_ptr<const Recipe> recipe;
  GRETA_TRY(compute.recipes.find(call, 1, &recipe));
  Operands operands;
  for (uint32_t s = 0; s < kSlotCount; ++s) operands[s] = call.slot[s];
  operands[kWeightOperand] = to.slice;
  return recorded(stream, [&] { return compute.recipes.record(*recipe, operands, {}, 1, stream); });
}

greta_status greta_weights_pack(greta_compute* compute, greta_stream stream, const greta_weights* weights,
                                greta_buffer from, uint64_t from_offset) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(weights, "weights"));
    return on_stream(*compute, stream, [&](StreamObject& to) -> Status {
      std::shared_ptr<BufferObject> source, target;
      Tensor tensor;
      Slice bytes;
      GRETA_TRY(to.not_recording("pack"));
      GRETA_TRY(read_weights(*compute, *weights, false, &target, &tensor));
      GRETA_TRY(within(compute->find(from, &source), "from"));
      if (from_offset % kWeightAlignment)
        return fail(Code::Argument, "from: the offset %llu is no multiple of %llu",
                    (unsigned long long)from_offset, (unsigned long long)kWeightAlignment);
      GRETA_TRY(slice_of(*source, "from", from_offset,
                         tensor_bytes(tensor.type, Layout::Gguf, tensor.n, tensor.depth, 1), &bytes));
      if (overlaps(bytes, tensor.slice))
        return fail(Code::Argument, "pack: %llu bytes at %llu are packed to %llu bytes at %llu of one buffer",
                    (unsigned long long)bytes.bytes, (unsigned long long)from_offset,
                    (unsigned long long)tensor.slice.bytes, (unsigned long long)weights->offset);
      GRETA_TRY(to.can_use(*source));
      GRETA_TRY(to.can_use(*target));
      to.use(source);
      to.use(target);
      return record_pack(*compute, to, bytes, tensor);
    });
  });
}

// y[n][depth] = the values of the weights. They are the table of an op that looks tokens up, and row t is
// token t.
static Status record_unpack(greta_compute& compute, StreamObject& stream, const Tensor& weights,
                            const Slice& y) {
  constexpr uint32_t kRows = kMaxStepTokens;
  static_assert(kRows % kPackRows == 0);
  Operands operands;
  const auto part_of = [&](uint32_t first) {
    Tensor part = weights;
    part.n = std::min(kRows, weights.n - first);
    const uint64_t at = tensor_bytes(weights.type, weights.layout, first, weights.depth, 1);
    part.slice = {weights.slice.buffer, weights.slice.offset + at,
                  tensor_bytes(weights.type, weights.layout, part.n, weights.depth, 1)};
    return part;
  };
  const auto find = [&](const Tensor& part, std::shared_ptr<const Recipe>* recipe) {
    return compute.recipes.find(CallMaker{}.embed(part, y), part.n, recipe);
  };
  std::shared_ptr<const Recipe> recipe;
  GRETA_TRY(find(part_of(0), &recipe));
  GRETA_TRY(find(part_of((weights.n - 1) / kRows * kRows), &recipe));
  GRETA_TRY(compute.recipes.numbered_rows(&operands[kStep]));
  return recorded(stream, [&]() -> Status {
    for (uint32_t first = 0; first < weights.n; first += kRows) {
      const Tensor part = part_of(first);
      const uint64_t row_bytes = weights.depth * sizeof(float);
      GRETA_TRY(find(part, &recipe));
      operands[kWeightOperand] = part.slice;
      operands[kY] = {y.buffer, y.offset + first * row_bytes, part.n * row_bytes};
      GRETA_TRY(compute.recipes.record(*recipe, operands, {}, part.n, stream));
      if (weights.n - first <= kRows) break;
    }
    return {};
  });
}

greta_status greta_weights_unpack(greta_compute* compute, greta_stream stream, const greta_weights* weights,
                                  const greta_tensor* y) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    GRETA_TRY(need(weights, "weights"));
    GRETA_TRY(need(y, "y"));
    return on_stream(*compute, stream, [&](StreamObject& to) -> Status {
      std::shared_ptr<BufferObject> source;
      Tensor tensor;
      TensorView target;
      RowsView rows;
      GRETA_TRY(to.not_recording("unpack"));
      GRETA_TRY(read_weights(*compute, *weights, false, &source, &tensor));
      GRETA_TRY(read_tensor(*compute, *y, "y", &target));
      GRETA_TRY(read_rows(target, &rows));
      GRETA_TRY(need_dense(target, rows));
      if (rows.rows != tensor.n || rows.heads != 1 || rows.width != tensor.depth)
        return fail(Code::Argument, "y has %llu rows of %llu values, the weights %u of %u",
                    (unsigned long long)rows.rows, (unsigned long long)rows.width, tensor.n, tensor.depth);
      if (overlaps(target.slice, tensor.slice)) return fail(Code::Argument, "y and the weights overlap");
      GRETA_TRY(to.can_use(*source));
      GRETA_TRY(to.can_use(*target.buffer));
      to.use(source);
      to.use(target.buffer);
      return record_unpack(*compute, to, tensor, target.slice);
    });
  });
}
