// What an operation does, after its arguments have been read: a call of an op over any number of rows.
#pragma once
#include "api/compute/step.h"
#include "api/compute/tensors.h"

namespace greta {

struct Work {
  Call call;  // over all rows; slices that move with the rows hold all of them
  uint64_t rows = 1;
  uint64_t row_bytes[kSlotCount] = {};  // from one row to the next; 0: the operand is the same for all
  bool counts_rows = false;             // a product, which asks how many rows live
  bool needs_lone_rows = false;
  bool has_rows = true;                 // else the stream's step is nothing to it
  bool needs_step = false;              // positions, tokens or page tables, which only a greta_step has
  // How many pages, positions and sequences its caches and tables have.
  uint64_t most_pages = UINT64_MAX, most_positions = UINT64_MAX, most_sequences = UINT64_MAX;
  Slice step = {};  // of the stream, if it has one
  // Operands that are float16 or bfloat16: each launch has them as float32 in scratch.
  struct Half {
    Slot slot;
    uint32_t type;   // kCast*
    uint32_t width;  // values from one row to the next, without gaps
  };
  std::array<Half, 3> halves = {};
  uint32_t half_count = 0;
  std::array<std::shared_ptr<BufferObject>, 8> uses;
  uint32_t use_count = 0;

  void use(const std::shared_ptr<BufferObject>& buffer) { uses[use_count++] = buffer; }
  // Gives the call an operand as it is, whose rows are `row_values` apart.
  void place(Slot slot, const TensorView& tensor, uint64_t row_values) {
    if (!tensor.there()) return;
    call.slot[slot] = tensor.slice;
    row_bytes[slot] = row_values * tensor.value_bytes();
    use(tensor.buffer);
  }
  // The same as float32; rows of float16 or bfloat16 have no gaps.
  void operand(Slot slot, const TensorView& tensor, uint64_t row_values) {
    place(slot, tensor, row_values);
    if (tensor.half()) halves[half_count++] = {slot, cast_type(tensor), uint32_t(row_values)};
  }
  static uint32_t cast_type(const TensorView& tensor) {
    return tensor.type == GRETA_TYPE_F16 ? kCastF16 : tensor.type == GRETA_TYPE_BF16 ? kCastBf16 : kCastF32;
  }
  void weight(const TensorView& vector) {
    call.weight = {QuantType::f32, Layout::Gguf, 1, uint32_t(vector.width()), 1, vector.slice, nullptr};
    use(vector.buffer);
  }
};

// Whether kernels of the device do it, how much scratch they want, and the recording of it. Rows beyond the
// most of a launch become several launches.
Status plan_work(greta_compute& compute, const Work& work, uint64_t* out_scratch_bytes);
Status record_work(greta_compute& compute, StreamObject& stream, const Work& work, greta_buffer scratch,
                   uint64_t scratch_offset);

// The three functions of an operation. read(compute, options, &work) -> Status reads its arguments.
template <class Given, class Read>
Status read_work(greta_compute* compute, const Given* given, Read&& read, Work* out) {
  GRETA_TRY(need_device(compute));
  GRETA_TRY(need(given, "the call"));
  Given call;
  GRETA_TRY(read_options(given, &call));
  return read(*compute, call, out);
}

template <class Given, class Read>
greta_status check_call(greta_compute* compute, const Given* given, Read&& read) {
  return fenced([&]() -> Status {
    Work work;
    uint64_t bytes;
    GRETA_TRY(read_work(compute, given, read, &work));
    return plan_work(*compute, work, &bytes);
  });
}

template <class Given, class Read>
greta_status scratch_of_call(greta_compute* compute, const Given* given, uint64_t* out_bytes, Read&& read) {
  return fenced([&]() -> Status {
    Work work;
    uint64_t bytes;
    GRETA_TRY(need(out_bytes, "out_bytes"));
    GRETA_TRY(read_work(compute, given, read, &work));
    GRETA_TRY(plan_work(*compute, work, &bytes));
    *out_bytes = bytes;
    return {};
  });
}

template <class Given, class Read>
greta_status record_call(greta_compute* compute, greta_stream stream, const Given* given,
                         greta_buffer scratch, uint64_t scratch_offset, Read&& read) {
  return fenced([&]() -> Status {
    GRETA_TRY(need_device(compute));
    return on_stream(*compute, stream, [&](StreamObject& to) -> Status {
      Work work;
      GRETA_TRY(read_work(compute, given, read, &work));
      return record_work(*compute, to, work, scratch, scratch_offset);
    });
  });
}

// Defines them by read_NAME(compute, call, &work).
#define GRETA_READ(name)                                                             \
  [](const greta_compute& on, const greta_##name##_call& given, greta::Work* work) { \
    return read_##name(on, given, work);                                             \
  }
#define GRETA_OPERATION(name)                                                                             \
  greta_status greta_##name##_check(greta_compute* compute, const greta_##name##_call* call) {            \
    return greta::check_call(compute, call, GRETA_READ(name));                                            \
  }                                                                                                       \
  greta_status greta_##name##_scratch(greta_compute* compute, const greta_##name##_call* call,            \
                                      uint64_t* out_bytes) {                                              \
    return greta::scratch_of_call(compute, call, out_bytes, GRETA_READ(name));                            \
  }                                                                                                       \
  greta_status greta_##name(greta_compute* compute, greta_stream stream, const greta_##name##_call* call, \
                            greta_buffer scratch, uint64_t offset) {                                      \
    return greta::record_call(compute, stream, call, scratch, offset, GRETA_READ(name));                  \
  }

}  // namespace greta
