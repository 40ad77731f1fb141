#include "graph/device_kernels.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>

namespace greta {

constexpr std::chrono::milliseconds kMoment{50};  // from one look at the compilers to the next

DeviceKernels::~DeviceKernels() {
  for (Entry& entry : entries_) device_.unload(entry.kernel);
}

Status DeviceKernels::try_matrices(const Log& log) {
  bool right = true;
  {
    const std::lock_guard<std::mutex> lock(matrices_mutex_);
    if (tried_matrices_) return {};
    GRETA_TRY(within(check_matrices(device_, &refused_, &right), "matrix instructions"));
    tried_matrices_ = true;
  }
  if (!right) log(LogLevel::Warning, "kernels with matrix instructions are not used: %s", error_text());
  return {};
}

DeviceKernels::Entry& DeviceKernels::entry(const KernelRow& row, std::span<const uint32_t> constants) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Entry& entry : entries_)
    if (same_code(*entry.row, row) && std::ranges::equal(entry.constants, constants)) return entry;
  return entries_.emplace_back(Entry{&row, {constants.begin(), constants.end()}, {}});
}

std::vector<DeviceKernels::Entry*> DeviceKernels::missing_of(std::span<Entry* const> wanted) {
  std::vector<Entry*> missing;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (Entry* entry : wanted)
    if (entry->state != State::There) missing.push_back(entry);
  return missing;
}

Status DeviceKernels::compile(Entry& entry) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (entry.state != State::Missing) return {};
    entry.state = State::AtWork;
  }
  struct Work {
    DeviceKernels& all;
    Entry& entry;
    State end = State::Missing;  // also where memory runs out
    ~Work() {
      const std::lock_guard<std::mutex> lock(all.mutex_);
      entry.state = end;
      all.ended_->notify_all();
    }
  } work{*this, entry};
  KernelCode code = entry.row->code;
  code.constants = entry.constants;
  GRETA_TRY(device_.load(code, &entry.kernel));
  entry.kernel.name = entry.row->name;
  work.end = State::There;
  return {};
}

// Several threads compile kernels while the caller's thread watches. A driver may take seconds for a kernel
// and cannot be interrupted.
struct DeviceKernels::Compilers {
  DeviceKernels& all;
  std::span<Entry* const> missing;
  const Progress& progress;
  ThreadPool threads;
  std::atomic<size_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex = {};
  std::condition_variable left = {};
  std::exception_ptr thrown = nullptr;  // by the progress callback
  uint32_t at_work;

  Compilers(DeviceKernels& of, std::span<Entry* const> kernels, const Progress& told)
      : all(of),
        missing(kernels),
        progress(told),
        threads(1 + uint32_t(std::min<size_t>(kernels.size(), std::min(kMaxCompilers, cpu_count())))),
        at_work(threads.workers() - 1) {}

  void compile() {
    for (size_t i; !stop && (i = next++) < missing.size(); ++done) {
      try {
        (void)all.compile(*missing[i]);
      } catch (const std::bad_alloc&) {  // the kernel stays missing, and the caller's thread tries again
      }
    }
  }
  bool wait_until_left() {  // waits for kMoment at most; returns true if all threads have ended
    std::unique_lock<std::mutex> lock(mutex);
    return left.wait_for(lock, kMoment, [&] { return at_work == 0; });
  }
  void watch() noexcept {
    try {
      tell();
    } catch (...) {
      thrown = std::current_exception();
      stop = true;
      while (!wait_until_left()) continue;
    }
  }
  void tell() {
    bool told = false;
    for (; !wait_until_left(); told = true)
      if (!stop && !progress.goes_on(done, missing.size())) stop = true;
    if (told && !stop) (void)progress.goes_on(done, missing.size());
  }
  void run() {
    if (!at_work) return compile();  // the system gave us no threads
    threads.run(
        [](void* context, uint32_t worker) noexcept {
          Compilers& c = *static_cast<Compilers*>(context);
          if (worker == 0) return c.watch();
          c.compile();
          const std::lock_guard<std::mutex> lock(c.mutex);
          if (--c.at_work == 0) c.left.notify_all();
        },
        this);
  }
};

static Status cancelled(size_t done, size_t all) {
  return fail(Code::Cancelled, "compiling was cancelled after %zu of %zu kernels", done, all);
}

// A kernel that failed is compiled once more in the caller's thread, to which the error text must belong.
// Kernels that are functions of this program need no compiling.
Status DeviceKernels::compile(std::span<Entry* const> missing, const Progress& progress,
                              std::vector<const KernelRow*>* refused) {
  if (!missing.back()->row->code.code.empty() && (missing.size() > 1 || progress.call)) {
    Compilers compilers(*this, missing, progress);
    compilers.run();
    if (compilers.thrown) std::rethrow_exception(compilers.thrown);
    if (compilers.stop) return cancelled(compilers.done, missing.size());
  }
  Status status;
  for (Entry* entry : missing) {
    const Status compiled = within(compile(*entry), "kernel %s", entry->row->name);
    if (compiled.ok()) continue;
    status = compiled;
    if (status.code != Code::Unsupported) break;
    refused->push_back(entry->row);  // the loop goes on, to find all that the driver refuses
  }
  return status;
}

Status DeviceKernels::wait_for_others(std::span<Entry* const> wanted, const Progress& progress) {
  const auto at_work = [&] {
    return std::ranges::count_if(wanted, [](const Entry* entry) { return entry->state == State::AtWork; });
  };
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ended_->wait_for(lock, kMoment, [&] { return at_work() == 0; })) {
    const size_t done = wanted.size() - size_t(at_work());
    lock.unlock();
    if (!progress.goes_on(done, wanted.size())) return cancelled(done, wanted.size());
    lock.lock();
  }
  return {};
}

const Kernel* KernelSet::want(const KernelRow& row, std::span<const uint8_t> block) {
  uint32_t constants[kMaxConstants + 1];
  DeviceKernels::Entry& entry = all_.entry(row, {constants, kernel_constants(row, block, constants)});
  if (std::ranges::find(wanted_, &entry) == wanted_.end()) wanted_.push_back(&entry);
  return &entry.kernel;
}

// A kernel that another thread had at work, and could not compile or was told to leave, is compiled here.
Status KernelSet::compile(const Progress& progress) {
  refused_.clear();
  const std::vector<DeviceKernels::Entry*> wanted = std::move(wanted_);
  wanted_.clear();
  for (;;) {
    const std::vector<DeviceKernels::Entry*> missing = all_.missing_of(wanted);
    if (missing.empty()) return {};
    GRETA_TRY(all_.compile(missing, progress, &refused_));
    GRETA_TRY(all_.wait_for_others(missing, progress));
  }
}

Status KernelSet::load(const KernelRow& row, std::span<const uint8_t> block, const Kernel** out) {
  *out = want(row, block);
  return compile();
}

}  // namespace greta
