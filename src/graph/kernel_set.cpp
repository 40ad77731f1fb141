#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>

#include "graph/graph.h"

namespace greta {

constexpr std::chrono::milliseconds kMoment{50};  // from one look at the compilers to the next

KernelSet::~KernelSet() {
  for (Entry& entry : entries_) device_.unload(entry.kernel);
}

const Kernel* KernelSet::want(const KernelRow& row, std::span<const uint8_t> block) {
  uint32_t constants[kMaxConstants + 1];
  const std::span<const uint32_t> wanted(constants, kernel_constants(row, block, constants));
  for (Entry& entry : entries_)
    if (same_code(*entry.row, row) && std::ranges::equal(entry.constants, wanted)) return &entry.kernel;
  return &entries_.emplace_back(Entry{&row, {wanted.begin(), wanted.end()}, {}}).kernel;
}

Status KernelSet::compile(Entry& entry) {
  KernelCode code = entry.row->code;
  code.constants = entry.constants;
  GRETA_TRY(device_.load(code, &entry.kernel));
  entry.kernel.name = entry.row->name;
  entry.there = true;
  return {};
}

// Several threads compile kernels while the caller's thread watches. A driver may take seconds for a kernel
// and cannot be interrupted.
struct KernelSet::Compilers {
  KernelSet& set;
  std::span<Entry* const> missing;
  const Progress& progress;
  ThreadPool threads;
  std::atomic<size_t> next{0}, done{0};
  std::atomic<bool> stop{false};
  std::mutex mutex = {};
  std::condition_variable left = {};
  std::exception_ptr thrown = nullptr;  // by the progress callback
  uint32_t at_work;

  Compilers(KernelSet& of, std::span<Entry* const> kernels, const Progress& told)
      : set(of),
        missing(kernels),
        progress(told),
        threads(1 + uint32_t(std::min<size_t>(kernels.size(), std::min(kMaxCompilers, cpu_count())))),
        at_work(threads.workers() - 1) {}

  void compile() {
    for (size_t i; !stop && (i = next++) < missing.size(); ++done) {
      try {
        (void)set.compile(*missing[i]);
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

// A kernel that failed is compiled once more in the caller's thread, to which the error text must belong.
// Kernels that are functions of this program need no compiling.
Status KernelSet::compile(std::span<Entry* const> missing, const Progress& progress) {
  if (!missing.back()->row->code.code.empty() && (missing.size() > 1 || progress.call)) {
    Compilers compilers(*this, missing, progress);
    compilers.run();
    if (compilers.thrown) std::rethrow_exception(compilers.thrown);
    if (compilers.stop)
      return fail(Code::Cancelled, "compiling was cancelled after %zu of %zu kernels", compilers.done.load(),
                  missing.size());
  }
  Status status;
  for (Entry* entry : missing) {
    if (entry->there) continue;
    const Status compiled = within(compile(*entry), "kernel %s", entry->row->name);
    if (compiled.ok()) continue;
    status = compiled;
    if (status.code != Code::Unsupported) break;
    refused_.push_back(entry->row);  // the loop goes on, to find all that the driver refuses
  }
  return status;
}

Status KernelSet::compile(const Progress& progress) {
  refused_.clear();
  std::vector<Entry*> missing;
  for (Entry& entry : entries_)
    if (!entry.there) missing.push_back(&entry);
  if (missing.empty()) return {};
  const Status status = compile(missing, progress);
  if (!status.ok()) std::erase_if(entries_, [](const Entry& entry) { return !entry.there; });
  return status;
}

Status KernelSet::load(const KernelRow& row, std::span<const uint8_t> block, const Kernel** out) {
  *out = want(row, block);
  return compile();
}

}  // namespace greta
