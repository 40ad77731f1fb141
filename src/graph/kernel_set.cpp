#include <algorithm>
#include <atomic>

#include "graph/graph.h"

namespace greta {

KernelSet::~KernelSet() {
  for (Entry& entry : entries_) device_.unload(entry.kernel);
}

const Kernel* KernelSet::want(const KernelRow& row, std::span<const uint8_t> block) {
  uint32_t constants[kMaxConstants + 1];
  const std::span<const uint32_t> wanted(constants, kernel_constants(row, block, constants));
  for (Entry& entry : entries_)
    if (entry.row->code.name == row.code.name && std::ranges::equal(entry.constants, wanted))
      return &entry.kernel;
  return &entries_.emplace_back(Entry{&row, {wanted.begin(), wanted.end()}, {}}).kernel;
}

Status KernelSet::compile(Entry& entry) {
  KernelCode code = entry.row->code;
  code.constants = entry.constants;
  GRETA_TRY(device_.load(code, &entry.kernel));
  entry.kernel.name = entry.row->name;
  return {};
}

// A driver takes up to a second for a kernel. What fails is compiled once more by the caller, so that the sentence is
// its own; kernels that are functions of the program have nothing to compile.
Status KernelSet::compile() {
  struct Work {
    KernelSet& set;
    std::atomic<size_t> next;
    std::vector<uint8_t> there;  // by what was missing
  };
  const size_t first = compiled_, missing = entries_.size() - first;
  refused_.clear();
  Work work{*this, 0, std::vector<uint8_t>(missing)};
  if (missing > 1 && !entries_.back().row->code.code.empty()) {
    ThreadPool compilers(uint32_t(std::min<size_t>(missing, std::min(kMaxCompilers, cpu_count()))));
    compilers.run(
        [](void* context, uint32_t) noexcept {
          Work& w = *static_cast<Work*>(context);
          for (size_t i; (i = w.next++) < w.there.size();)
            w.there[i] = w.set.compile(w.set.entries_[w.set.compiled_ + i]).ok();
        },
        &work);
  }
  Status status;
  for (size_t i = 0; i < missing; ++i) {
    Entry& entry = entries_[first + i];
    if (work.there[i]) continue;
    const Status compiled = within(compile(entry), "kernel %s", entry.row->name);
    if (compiled.ok()) continue;
    status = compiled;
    if (status.code != Code::Unsupported) break;
    refused_.push_back(entry.row);  // there may be more of them
  }
  if (status.ok()) return compiled_ = entries_.size(), Status{};
  for (; entries_.size() > first; entries_.pop_back()) device_.unload(entries_.back().kernel);
  return status;
}

Status KernelSet::load(const KernelRow& row, std::span<const uint8_t> block, const Kernel** out) {
  *out = want(row, block);
  return compile();
}

}  // namespace greta
