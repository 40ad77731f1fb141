// The kernel table: one row for each compiled kernel, written by the CMake line that compiles it.
#pragma once
#include "compute/launch.h"
#include "compute/reason.h"

namespace greta {

constexpr uint32_t kMaxConstants = 10;

struct KernelRow {
  const char* name;     // "matmul_plain_q8_0": op, variant, type
  const char* backend;  // column of DeviceInfo::backend
  const char* target;   // DeviceInfo::arch that the code is for ("gfx942"), or "" for any
  uint32_t needs;       // feature bits that the device must have
  uint32_t lacks;       // and those that it must not have
  Op ops[kMaxFused];    // the sequence it covers
  uint32_t op_count;
  QuantType type;  // of the weight; f32 where the op has none
  Layout layout;
  Form form;                            // of x (matmul) or of y (convert)
  uint32_t tokens_min, tokens_max;      // buckets it serves
  uint32_t n_multiple, depth_multiple;  // what the weight's shape must divide by
  uint32_t tile;                        // rows of y that a group makes, unless the sequence fixes it
  uint32_t tile_tokens;                 // and for how many tokens; 0: for all
  uint32_t splits;        // groups that may share a tile, each over a part of the columns: at most
  uint32_t shared_bytes;  // what the device must have for a group
  uint32_t rank;          // preferred when higher; 0 is the plain kernel, the definition of right
  uint16_t constant_fields[kMaxConstants];  // where in the block what is fixed for a model stands
  uint32_t constant_count;
  uint16_t threads_field;  // likewise the threads of a group; 0: they are the code's
  KernelCode code;
};

// The specialization constants that `row` takes with this block, in order of their ids: the threads
// of a group, then the block's fields. Returns how many. They are KernelCode::constants on load; a
// backend that has none ignores them, since its kernels read the block.
uint32_t kernel_constants(const KernelRow& row, std::span<const uint8_t> block,
                          uint32_t (&out)[kMaxConstants + 1]);

std::span<const KernelRow> kernel_table();

bool multiplies(Op op);  // matmul, matmul_expert
Op lead_op(std::span<const Op> ops);

// What an op's file provides. `calls` is the sequence that `row` covers, in the row's order; the op
// that leads it (lead_op: route, else attention, else the first that multiplies, else rope, else the first)
// packs for all.
struct OpInfo {
  // Whether shapes and types fit each other and the row; `why` names the numbers that do not, if someone
  // asks.
  bool (*fits)(std::span<const Call> calls, const KernelRow& row, Reason& why);
  // The grid for a plan of `bucket` token rows.
  void (*groups)(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]);
  // Block and accesses. Addresses are taken from the calls' slices as they are now.
  void (*pack)(std::span<const Call> calls, const KernelRow& row, Launch* out);
  // What `rows` live rows (tokens or outputs) at `depth` cached positions must move and compute.
  Cost (*cost)(std::span<const Call> calls, uint32_t rows, uint32_t depth);
};

const OpInfo& op_info(Op op);
const Call& lead_call(std::span<const Call> calls);
const OpInfo& lead_of(std::span<const Call> calls);

// The whole of a launch but the loaded kernel.
void make_launch(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, Launch* out);

// Of a matmul by a row with tile_tokens: its tiles, and the bytes of the sums of groups that share them
// (Call::Matmul::splits).
uint32_t tile_count(const Call& call, const KernelRow& row, uint32_t bucket);
uint64_t split_bytes(const Call& call, const KernelRow& row, uint32_t bucket);

}  // namespace greta
