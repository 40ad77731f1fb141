// Runs single launches on a device and checks them. Every buffer lies between canaries, and holds NaN where
// nothing was put. The rig notes which rows of the kernel table have run. It throws Failed, which
// run_selftest() or a test catches.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "selftest/quant/quant.h"
#include "selftest/reference/reference.h"
#include "tune/harness.h"

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

// Under a sanitizer launches are not repeated: that would show nothing new and take half of the time.
#if defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

// What another thread sees of working rigs, and how it stops them.
struct Watched {
  std::vector<bool> counted;            // by row of the kernel table: whether `kernels` counts it
  std::atomic<bool> stop{false};        // set by the other thread; the rigs then throw Stopped
  std::atomic<const char*> kernel{""};  // the kernel that was launched last
  std::atomic<uint32_t> kernels{0};     // how many kernels have run
  std::atomic<uint64_t> launches{0};
};
struct Stopped {};

// Returns true if a pattern ("matmul_rows_*", "embed_plain_f16") fits the kernel's name.
bool names_kernel(const std::string& pattern, const char* kernel);

class Rig {
 public:
  // `checked` says that the device verifies accesses. That is slow, so fewer shapes are run.
  explicit Rig(Device& device, bool checked = false);
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  const DeviceInfo& info() const;
  bool checked() const { return checked_; }
  // Makes this a quick rig: each row of the table runs only in the first shape that reaches it, once with
  // each type of cache, and without repeats. A shape lasts from one reset() to the next.
  void hurry() { quick_ = true; }
  bool repeats() const { return !checked_ && !quick_ && !kSanitized; }
  // Limits the kernels to those that the pattern names ("": all), or to those for weights of one type.
  void only(const std::string& name) { only_ = name; }
  void only(QuantType type) { type_ = type; }
  // Runs the kernels that only() names with this packed code in place of their own.
  void give_code(const CodeBytes& code) { given_ = code; }
  // Several rigs may share one Watched.
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
  // A buffer of `count` floats that begins with these values. The rest is NaN of another kind than that of a
  // poisoned result, so that a row that is not live shows it if it spreads there.
  Slice put_padded(std::vector<float> values, uint64_t count);
  void poison(const Slice& slice);
  template <class T>
  std::vector<T> get(const Slice& slice) {
    std::vector<T> values(slice.bytes / sizeof(T));
    read({&slice, 1}, values.data());
    return values;
  }
  void reset();  // releases all buffers

  // The rows that this device may use for the calls, in any order. A quick rig leaves out those that have
  // run.
  std::vector<const KernelRow*> rows(std::span<const Call> calls, uint32_t bucket) const;
  // The sequences ("matmul", "matmul+add") that `op` leads and the backend's rows cover.
  std::vector<std::string> sequences(Op op) const;
  const KernelRow* plain_row(std::span<const Call> calls, uint32_t bucket) const;

  // Runs the calls through one row, waits, and checks all canaries.
  void run(std::span<const Call> calls, const KernelRow& row, uint32_t bucket);
  void run_plain(const Call& call, uint32_t bucket);

  // Fails unless every row that `op` leads, and that this device can run, has run.
  void require_all_run(Op op) const;
  const std::vector<bool>& ran() const { return ran_; }  // by row of the table
  // Returns true if rows() may still give one that `op` leads for such weights. A rig that is not quick
  // always returns true.
  bool left(Op op, QuantType type, Layout layout, uint32_t bucket) const;
  uint64_t launches() const { return launches_; }

 private:
  using Turn = std::pair<const KernelRow*, uint32_t>;  // a row, and the cache types that its calls use
  static Turn turn_of(std::span<const Call> calls, const KernelRow& row);
  void write(const Slice& slice, const void* from);
  void read(std::span<const Slice> slices, void* to);
  void check_canaries();
  void stop_if_asked() const {
    if (watched_ && watched_->stop) throw Stopped{};
  }

  KernelRow with_given_code(const KernelRow& row);

  Harness harness_;
  CodeBytes given_;
  std::map<const char*, std::string> given_names_;  // by KernelCode::name; another address is another kernel
  bool checked_, quick_ = false;
  std::string only_;
  std::optional<QuantType> type_;
  Watched* watched_ = nullptr;
  uint64_t launches_ = 0;
  std::vector<Slice> canaries_;  // before and after each buffer
  std::vector<bool> ran_;
  std::set<Turn> running_, had_;  // of a quick rig: what runs in this shape, and what ran in earlier ones
};

// Builds a StepState. What a kernel must not read is 0xffffffff, such as an unused row or page.
struct StepRows {
  explicit StepRows(uint32_t sequences = 4, uint32_t pages = 8);
  // Appends a live row and gives its position a page. With `output` the row also has logits.
  void add(uint32_t token, uint32_t sequence, uint32_t position, bool output = false);
  void add_tokens(uint32_t count);                      // rows at positions 0 .. count - 1 of sequence 0
  uint32_t page(uint32_t sequence, uint32_t position);  // pool page, given out in a scattered order
  uint32_t pool_pages() const { return sequences * pages; }
  Slice put(Rig& rig) const;

  uint32_t sequences, pages;
  uint32_t first_drawn = 0, lone_count = 0;
  std::vector<StepRow> rows;
  Ids outputs, table;
  std::vector<SampleParams> params;
  std::vector<SamplePenalties> penalties;
  Ids last_token;
  std::vector<SharedPrefixes> prefixes;  // one, or none
};

Values to_values(const std::vector<float>& x);
std::vector<float> gaussians(size_t count, Random& random, double size = 1);
// Gaussian values, of which one in 256 is multiplied by 1e3, as in activations of real models.
std::vector<float> with_outliers(size_t count, Random& random);

// What is put into activations to see whether a result tells of it.
constexpr float kNotFinite[] = {__builtin_nanf(""), -__builtin_nanf(""), __builtin_inff(), -__builtin_inff()};
// Fails if one of `count` values of y from `first` on is finite.
void require_not_finite(const std::vector<float>& y, size_t first, size_t count, const std::string& what);
void require_finite(const std::vector<float>& y, size_t first, size_t count, const std::string& what);

double nmse(const std::vector<float>& y, const Values& reference);
// Fails unless the first reference.size() values of y have an NMSE of at most `limit` and the rest is poison.
void require_close(const std::vector<float>& y, const Values& reference, double limit,
                   const std::string& what);

// A random weight matrix in GGUF order, and its values.
struct Matrix {
  QuantType type;
  uint32_t n, depth, count;
  std::vector<uint8_t> bytes;
  Values values;
};
enum class Scales { Plain, Extreme };  // Extreme: blocks of zeros, and largest, denormal and negative scales
Matrix random_matrix(QuantType type, uint32_t n, uint32_t depth, uint32_t count, Scales scales,
                     Random& random);
// Puts the matrix on the device, in `layout`.
Tensor put_matrix(Rig& rig, const Matrix& matrix, Layout layout);
Tensor put_vector(Rig& rig, const std::vector<float>& values);

// The types and layouts for which this device has a row of `op`.
struct Stored {
  QuantType type;
  Layout layout;
};
std::vector<Stored> stored_types(const Rig& rig, Op op);

}  // namespace greta::selftest
