// The kernel table: one row for each compiled kernel, written by the CMake line that compiles it.
#pragma once
#include "compute/launch.h"
#include "compute/reason.h"

namespace greta {

constexpr uint32_t kMaxConstants = 11;

// How a kernel multiplies: each lane for itself, or by matrix instructions on float16 or bfloat16.
enum class Arithmetic : uint8_t { Lanes, Matrices, Brain };

struct KernelRow {
  const char* name;     // "matmul_plain_q8_0": op, variant, type
  const char* backend;  // equal to DeviceInfo::backend
  const char* target;   // what the code is for: a DeviceInfo::arch ("gfx942"), a family of them
                        // (runtime/gfx_family.h), or "" for any
  uint32_t needs;       // feature bits that the device must have
  uint32_t lacks;       // feature bits that the device must not have
  Op ops[kMaxFused];    // the sequence that it covers
  uint32_t op_count;
  QuantType type;  // of the weight; f32 if the op has none
  Layout layout;
  Form form;                            // activation format of x (matmul) or of y (convert)
  uint32_t tokens_min, tokens_max;      // the buckets that it serves
  uint32_t n_multiple, depth_multiple;  // the weight's n and depth must be multiples of these
  uint32_t tile;                        // rows of y that a group computes, unless the sequence fixes it
  uint32_t tile_tokens;                 // tokens for which a group computes them; 0: all
  // Split-K: the most groups that may share a tile. With lone_rows: the groups that share the rows.
  uint32_t splits;
  uint32_t shared_bytes;  // shared memory that a group needs
  uint32_t rank;          // a higher one is preferred; 0: the plain kernel, the definition of right
  uint16_t constant_fields[kMaxConstants];  // offsets in the block of fields that become constants
  uint32_t constant_count;
  uint16_t threads_field;  // offset in the block of the threads of a group; 0: the code fixes them
  KernelCode code;
  uint32_t expert_slots;  // the most slots that an expert has on average in a step of the bucket; 0: any
  Prefix prefix;          // what an attention does with shared pages
  Arithmetic arithmetic;
  uint32_t product_clocks;  // of a product of 16 x 16 x 16 by the target's matrix instructions
  bool lone_rows;       // attention: each row is the only one of its sequence, and groups share them by work
  bool numbered_tiles;  // matmul: they lie along x of the grid, so that make_launch can deal them out
};

// Writes the specialization constants that `row` takes from this block (KernelCode::constants), in order of
// their ids: the threads of a group, then the block's fields. Returns how many. A backend without such
// constants ignores them, since its kernels read the block.
uint32_t kernel_constants(const KernelRow& row, std::span<const uint8_t> block,
                          uint32_t (&out)[kMaxConstants + 1]);

// Whether rows of the table have the same code. Its name alone does not say so: code for a family of devices
// may stand beside code for one of them.
inline bool same_code(const KernelRow& a, const KernelRow& b) {
  return a.code.name == b.code.name && a.target == b.target;
}

std::span<const KernelRow> kernel_table();
// Sorted by backend, then by the numbers of the ops that a row covers.
std::span<const KernelRow> rows_of(const char* backend);
// Those of a backend's rows that cover ops in just this order.
std::span<const KernelRow> rows_of(std::span<const KernelRow> rows, std::span<const Call> calls);

bool multiplies(Op op);  // matmul, matmul_expert
Op lead_op(std::span<const Op> ops);

// What an op's file provides. `calls` is the sequence that `row` covers, in the row's order. The op that
// leads the sequence packs for all of it. It is the first route; without one the first attention, then the
// first product, then the first rope; without any of these the first op.
struct OpInfo {
  // Returns true if shapes and types fit each other and the row. Else `why` names the numbers that do not.
  bool (*fits)(std::span<const Call> calls, const KernelRow& row, Reason& why);
  // The grid for a plan of `bucket` token rows.
  void (*groups)(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, uint32_t (&out)[3]);
  // Writes the block and the accesses. Addresses are taken from the calls' slices as they are now.
  void (*pack)(std::span<const Call> calls, const KernelRow& row, Launch* out);
  // What `rows` live rows (tokens or outputs) at `depth` cached positions must move and compute.
  Cost (*cost)(std::span<const Call> calls, uint32_t rows, uint32_t depth);
};

const OpInfo& op_info(Op op);
const Call& lead_call(std::span<const Call> calls);
const OpInfo& lead_of(std::span<const Call> calls);

// Makes all of a launch but the loaded kernel, for this device; null: for any.
//
// GPUs of several dies give the groups of a launch to their dies in turn, and each die has an L2 cache of its
// own. So numbered tiles are dealt out: the grid has as many groups along x as there are dies, and along y
// the tiles of a die. A die's groups then make neighbouring tiles, which read the same weights.
void make_launch(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, const DeviceInfo* device,
                 Launch* out);

// For a product by a row with tile_tokens: how many tiles it has, and the bytes of the partial sums of groups
// that share them (Call::Matmul::splits).
uint32_t tile_count(const Call& call, const KernelRow& row, uint32_t bucket);
uint64_t split_bytes(const Call& call, const KernelRow& row, uint32_t bucket);

}  // namespace greta
