// Runs one launch of a plan apart from its model, by any row of the kernel table that covers its calls: on
// made-up operands of the same shapes, beside the plain kernels, and with a clock.
#pragma once
#include <list>

#include "selftest/quant/quant.h"
#include "tune/harness.h"

namespace greta::selftest {

// Whether a trial can make up what the calls read: products of matrices and what is fused with them.
bool can_try(std::span<const Call> calls);

// A launch of each copy of the weights, by one row.
struct Attempt {
  KernelRow row;
  std::vector<Launch> launches;
  std::vector<Launch> convert;  // what makes the form of x that the row reads; none: it reads float32
  bool pays = false;            // the time of that is counted, too
  size_t timed = 0;             // launches for one sample; 0: not known yet
  size_t next = 0;              // the copy of the weights that is used next
};

// It belongs to one thread. After a failure it is of no more use.
class Trial {
 public:
  explicit Trial(Device& device) : harness_(device) {}
  Status open() { return harness_.open(); }
  Harness& harness() { return harness_; }

  // Makes operands for the calls of a plan, of which slices only say which are the same memory, and computes
  // their result with plain kernels. `cold` rotates the weights past the caches.
  Status make(std::span<const Call> calls, uint32_t bucket, bool cold = true);
  // Those calls, with the operands that were made.
  std::span<const Call> calls() const { return calls_; }
  // Prepares a row that covers calls(). Fails with Unsupported if the driver refuses its code. `splits` is
  // Call::Matmul::splits.
  Status prepare(const KernelRow& row, uint32_t splits, Attempt* out);
  // Runs it once. *error gets the NMSE of the result against that of the plain kernels.
  Status prove(Attempt& attempt, double* error);
  // The time of one launch, as the mean of so many that a clock can tell.
  Status time(Attempt& attempt, uint64_t* ns);

 private:
  // Memory that slices of the plan share.
  struct Region {
    const Buffer* of;
    uint64_t begin, end;
    Slice slice;
    std::vector<uint8_t> bytes;  // what it holds at first
  };
  struct Weights {
    Slice gguf;
    Copies copies;
  };
  Status make_regions();
  Status make_weights();
  Status fill_weights(Tensor* tensor, Weights* out);
  Slice place(const Slice& slice, const std::vector<Region>& regions) const;
  std::vector<uint8_t> bytes_of(const Region& region);
  std::vector<uint8_t> step(uint32_t live) const;
  Status renew(uint32_t live);  // writes to all operands what they held at first
  Status run_plain();
  Status read_result(std::vector<float>* out);
  Status convert_input(std::vector<Call>* calls, Form form, Attempt* out);

  Harness harness_;
  std::vector<Call> calls_, plain_;
  bool cold_ = true;
  uint32_t bucket_ = 1, proven_ = 1;  // rows of the step, and how many of them are compared
  std::vector<Region> regions_;
  std::list<Weights> weights_;  // of the products, in their order
  std::vector<double> expected_;
  std::vector<float> gaussians_;
  reference::Random random_{1};
};

// The largest NMSE of a result against that of plain kernels. Rows that round x to 8 bits have up to 2e-4
// behind a gate (checks/matmul.cpp), and what a wrong kernel makes has 1e-2 and more.
constexpr double kMostTrialError = 1e-3;

}  // namespace greta::selftest
