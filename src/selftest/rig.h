// Runs single launches on a device and checks them: every buffer stands between canaries and is
// poisoned with NaN where nothing was put, and it is known which rows of the kernel table have run.
// What goes wrong is thrown as Failed, and caught by run_selftest() or by the tests.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "selftest/quant/quant.h"
#include "selftest/reference/reference.h"

namespace greta::selftest {

using reference::Ids;
using reference::Random;
using reference::Values;

struct Failed {
  std::string what;
};
inline void expect(bool right, const std::string& what) {
  if (!right) throw Failed{what};
}

// A launch that is repeated shows a sanitizer nothing new, and takes half of the time there.
#if defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// Rigs at work as another thread sees them, and may stop them.
struct Watched {
  std::vector<bool> counted;            // by row of the kernel table: of which `kernels` is told
  std::atomic<bool> stop{false};        // the next launch or buffer is not made: Stopped is thrown
  std::atomic<const char*> kernel{""};  // that was launched last
  std::atomic<uint32_t> kernels{0};     // that have run
  std::atomic<uint64_t> launches{0};
};
struct Stopped {};

// "matmul_rows_*", "embed_plain_f16"
bool names_kernel(const std::string& pattern, const char* kernel);

class Rig {
 public:
  // checked: the device verifies accesses, which is slow: fewer shapes will do.
  explicit Rig(Device& device, bool checked = false);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  const DeviceInfo& info() const;
  bool checked() const { return checked_; }
  // From now on each row of the table runs in one shape alone, the first that reaches it: a shape lasts from
  // a reset to the next. Again with each type of cache, and without the repeats that tell whether the bits
  // are the same.
  void hurry() { quick_ = true; }
  bool repeats() const { return !checked_ && !quick_ && !kSanitized; }
  // Only kernels of this name from now on, of names that begin so where it ends with '*'; "": all.
  void only(const std::string& name) { only_ = name; }
  // And of those only the ones for weights of this type.
  void only(QuantType type) { type_ = type; }
  // `by` sees what runs from now on; other rigs may have the same one.
  void watch(Watched* by) { watched_ = by; }
  bool takes(const KernelRow& row) const {
    return (only_.empty() || names_kernel(only_, row.name)) && (!type_ || row.type == *type_);
  }

  Slice room(uint64_t bytes);                   // all bytes 0xff: NaN, an id that is too large
  Slice put(const void* from, uint64_t bytes);  // a buffer with these bytes
  template <class T>
  Slice put(const std::vector<T>& values) {
    return put(values.data(), values.size() * sizeof(T));
  }
  // Values for `count` floats: those past them are NaN of another kind than a poisoned result's, so that
  // one that spreads to a row that is not live is seen there.
  Slice put_padded(std::vector<float> values, uint64_t count);
  void poison(const Slice& slice);
  template <class T>
  std::vector<T> get(const Slice& slice) {
    std::vector<T> values(slice.bytes / sizeof(T));
    read(slice, values.data());
    return values;
  }
  void reset();  // releases all buffers

  // The rows that this device may use for the calls, best first not implied; of a quick rig those that have
  // had no shape yet.
  std::vector<const KernelRow*> rows(std::span<const Call> calls, uint32_t bucket) const;
  // The sequences that the backend's rows cover and `op` leads: "matmul", "matmul+add", ..
  std::vector<std::string> sequences(Op op) const;
  const KernelRow* plain_row(std::span<const Call> calls, uint32_t bucket) const;

  // Runs the calls through one row, waits, and checks all canaries.
  void run(std::span<const Call> calls, const KernelRow& row, uint32_t bucket);
  void run_plain(const Call& call, uint32_t bucket);

  // Fails unless each row of the table that `op` leads, and this device can run, has run.
  void require_all_run(Op op) const;
  const std::vector<bool>& ran() const { return ran_; }  // by row of the table
  // Whether rows() may give one that `op` leads, for these weights: always, but of a quick rig.
  bool left(Op op, QuantType type, Layout layout, uint32_t bucket) const;
  uint64_t launches() const { return launches_; }

 private:
  struct Room;
  using Turn = std::pair<const KernelRow*, uint32_t>;  // a row, and the types of the cache that its calls use
  static Turn turn_of(std::span<const Call> calls, const KernelRow& row);
  // Whether the host writes and reads it where it lies; a checked device is to see the copies.
  bool reaches(const Slice& slice) const { return slice.buffer->mapped && !checked(); }
  void read(const Slice& slice, void* to);
  void write(const Slice& slice, const void* from);
  void finish();  // waits for all that was recorded
  void grow(Buffer* staging, Memory memory, uint64_t bytes);
  void check_canaries();
  void stop_if_asked() const {
    if (watched_ && watched_->stop) throw Stopped{};
  }

  Device& device_;
  KernelSet kernels_;
  bool checked_, quick_ = false;
  std::string only_;
  std::optional<QuantType> type_;
  Watched* watched_ = nullptr;
  std::unique_ptr<Stream> stream_;
  Buffer upload_, readback_;
  uint64_t staged_ = 0;  // bytes of upload_ whose copies were recorded since the last wait
  uint64_t launches_ = 0;
  std::vector<std::unique_ptr<Room>> rooms_;
  std::vector<bool> ran_;
  std::set<Turn> running_, had_;  // of a quick rig: in this shape, and in those before
};

// A StepState in the making. What a kernel must not look at is 0xffffffff: an unused row, a page of
// a sequence that holds nothing yet.
struct StepRows {
  explicit StepRows(uint32_t sequences = 4, uint32_t pages = 8);
  // Appends a live row and gives its position a page; `output`: also a row of the logits.
  void add(uint32_t token, uint32_t sequence, uint32_t position, bool output = false);
  void add_tokens(uint32_t count);                      // rows at positions 0 .. count - 1 of sequence 0
  uint32_t page(uint32_t sequence, uint32_t position);  // pool page, given out in a scattered order
  uint32_t pool_pages() const { return sequences * pages; }
  Slice put(Rig& rig) const;

  uint32_t sequences, pages;
  std::vector<StepRow> rows;
  Ids outputs, table;
  std::vector<SampleParams> params;
  Ids last_token;
};

Values to_values(const std::vector<float>& x);
std::vector<float> gaussians(size_t count, Random& random, double size = 1);
// Gaussian, with one value of 1e3 in 256, as activations of real models have them.
std::vector<float> with_outliers(size_t count, Random& random);

double nmse(const std::vector<float>& y, const Values& reference);
// The first reference.size() values of y within `limit`; those after it untouched poison.
void require_close(const std::vector<float>& y, const Values& reference, double limit,
                   const std::string& what);

// A random weight matrix in GGUF order, and its values.
struct Matrix {
  QuantType type;
  uint32_t n, depth, count;
  std::vector<uint8_t> bytes;
  Values values;
};
enum class Scales { Plain, Extreme };  // Extreme: zero blocks, largest scales, denormal and negative ones
Matrix random_matrix(QuantType type, uint32_t n, uint32_t depth, uint32_t count, Scales scales,
                     Random& random);
// On the device in `layout`.
Tensor put_matrix(Rig& rig, const Matrix& matrix, Layout layout);
Tensor put_vector(Rig& rig, const std::vector<float>& values);

// The types and layouts for which this device has a row of `op`.
struct Stored {
  QuantType type;
  Layout layout;
};
std::vector<Stored> stored_types(const Rig& rig, Op op);

}  // namespace greta::selftest
