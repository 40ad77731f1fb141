// Puts operands on a device, launches single ops on them and times the launches. What measures a device, the
// benches and the self-test stand on it.
#pragma once
#include <list>
#include <memory>
#include <vector>

#include "tune/tune.h"

namespace greta {

// The shortest round that says something. The cost of its beginning and end is then negligible.
constexpr uint64_t kRoundNs = 5'000'000;

// The same bytes several times. Launches that take them in turn find them in no cache.
struct Copies {
  Slice all;
  uint64_t bytes = 0, count = 0;
  Slice operator[](uint64_t i) const { return {all.buffer, all.offset + i % count * bytes, bytes}; }
};

// It belongs to one thread.
class Harness {
 public:
  // `in_place` says that the host may read and write memory where it is mapped. A checked device must see
  // copies instead.
  explicit Harness(Device& device, bool in_place = true) : device_(device), in_place_(in_place) {}
  ~Harness();
  Harness(const Harness&) = delete;
  Harness& operator=(const Harness&) = delete;
  Status open();

  const DeviceInfo& info() const { return device_.info(); }
  RowFilter filter() const { return {&info(), false}; }  // rows that the device may use

  // Operands. They live until reset().

  Status room(uint64_t bytes, Slice* out);  // what it holds is not known
  Status put(const void* from, uint64_t bytes, Slice* out);
  template <class T>
  Status put(const std::vector<T>& values, Slice* out) {
    return put(values.data(), values.size() * sizeof(T), out);
  }
  // The copies are submitted with the next launch or read, since a GPU takes longer for a submission.
  Status write(const Slice& to, const void* from);
  // Waits for all that was launched and reads the slices, one behind the other, with a single submission.
  Status read(std::span<const Slice> from, void* to);
  Status fill(const Slice& to, uint32_t word);
  // Room for `bytes` as often as is needed so that no cache holds all; once if `cold` is false.
  Status copies(uint64_t bytes, bool cold, Copies* out);
  Status repeat(const Copies& copies);  // writes what the first holds to the others
  // Converts weights in GGUF order to the tensor's layout, by the best kernels.
  Status pack(const Slice& gguf, const Tensor& to);
  Status finish();  // waits for all that was recorded
  void reset();     // after finish(): releases all operands

  // Launches.

  // Makes a launch and loads its kernel, which stays loaded. Constants of the kernel behind those that the
  // row takes from the block are `more`.
  Status prepare(std::span<const Call> calls, const KernelRow& row, uint32_t bucket, Launch* out,
                 std::span<const uint32_t> more = {});
  // Records the launch. What is recorded after it sees what it wrote.
  Status launch(const Launch& launch);

  enum class Order : uint8_t { Together, Apart };  // whether launches may overlap
  // The time from the beginning of the first to the end of the last.
  Status time(std::span<const Launch> launches, Order order, uint64_t* ns);
  // The shortest time of so many rounds. On a GPU they begin after its clocks have risen.
  Status best_time(std::span<const Launch> launches, Order order, uint64_t* ns, uint32_t rounds = 4);

 private:
  struct Loaded {
    const char *code, *target;  // of the row: rows of one code share a kernel
    std::vector<uint32_t> constants;
    Kernel kernel;
  };
  bool reaches(const Slice& slice) const { return slice.buffer->mapped && in_place_; }
  Status grow(DeviceMemory& staging, Memory memory, uint64_t bytes);

  Device& device_;
  bool in_place_;
  std::list<DeviceMemory> rooms_;
  DeviceMemory upload_, readback_;
  uint64_t staged_ = 0;    // bytes of upload_ whose copies were recorded since the last wait
  bool recorded_ = false;  // since the last wait
  std::list<Loaded> kernels_;
  Event from_, to_;
  std::unique_ptr<Stream> stream_;
};

// The calls that convert weights in GGUF order to the tensor's layout, one matrix each.
std::vector<Call> packing_calls(const Slice& gguf, const Tensor& to);

}  // namespace greta
