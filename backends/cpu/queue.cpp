// Running: the workers walk a list of commands, and one stream's list may wait for another's.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "backends/cpu/cpu.h"

namespace greta {

constexpr uint64_t kPatienceNs = 60'000'000'000;  // how long a signal that nobody submits is waited for
constexpr uint64_t kTurnNs = 10'000'000;  // what others wait for at most, but for the rest of a launch
constexpr uint64_t kCopyUnit = 4096;      // a copy or fill is shared among workers in units of these bytes

namespace {

struct Range {
  uint64_t first, last;
};

// The range of n items that a worker does. It depends on nothing but the arguments.
Range share(uint64_t n, uint32_t worker, uint32_t workers) {
  return {n * worker / workers, n * (worker + 1) / workers};
}

Range byte_share(uint64_t bytes, uint32_t worker, uint32_t workers) {
  const Range units = share(divide_up(bytes, kCopyUnit), worker, workers);
  return {units.first * kCopyUnit, std::min(bytes, units.last * kCopyUnit)};
}

void fill_words(uint8_t* to, uint32_t word, uint64_t bytes) {
  auto* words = reinterpret_cast<uint32_t*>(to);
  std::fill(words, words + bytes / sizeof word, word);
}

// A function of a caller takes its scratch memory as void*, where a kernel takes Scratch*. Both are called
// alike, which the sanitizer of function types does not know.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
void
call(const CpuCommand& command, const Range& groups, Scratch* scratch) {
  const uint32_t count = uint32_t(groups.last - groups.first);
  if (count) command.function(command.block, uint32_t(groups.first), count, scratch);
}

}  // namespace

// A list of commands on the workers. After kTurnNs it gives way at a barrier where other threads wait for the
// pool, so that a step of a long prompt does not hold up those of other executors.
struct CpuDevice::Turn {
  CpuDevice* device;
  std::span<const CpuCommand> commands;
  Place at = {};
  bool done = false;
  uint64_t begun_ns = 0;
  // Whether it gives way at a barrier, by the barrier's number: worker 0 is at most one barrier ahead.
  std::atomic<bool> gives_way[2] = {};

  static void job(void* context, uint32_t worker) noexcept {
    Turn& turn = *static_cast<Turn*>(context);
    Place at = turn.at;
    uint64_t barriers = 0;
    if (worker == 0) turn.begun_ns = now_ns();
    const bool done = turn.device->walk(turn.commands, turn, &at, &barriers, worker);
    turn.device->pool_.meet();  // all have read where they begin
    if (worker == 0) turn.at = at, turn.done = done;
  }
  void look(uint64_t barrier) {
    gives_way[barrier % 2].store(device->callers_ > 1 && now_ns() - begun_ns > kTurnNs,
                                 std::memory_order_relaxed);
  }
};

void CpuDevice::run(std::span<const CpuCommand> commands) {
  Turn turn{.device = this, .commands = commands};
  ++callers_;
  while (!turn.done) pool_.run(Turn::job, &turn);
  --callers_;
}

// Returns false where the turn gives way; `*at` is where it goes on.
bool CpuDevice::walk(std::span<const CpuCommand> commands, Turn& turn, Place* at, uint64_t* barriers,
                     uint32_t worker) noexcept {
  const uint32_t workers = pool_.active();
  Scratch scratch{scratch_ + uint64_t(worker) * kCpuScratchBytes, kCpuScratchBytes};
  for (; at->command < commands.size(); ++at->command) {
    const CpuCommand& command = commands[at->command];
    switch (command.kind) {
      case CpuCommand::Dispatch:
        call(command, share(command.groups, worker, workers), &scratch);
        break;
      case CpuCommand::Copy: {
        const Range part = byte_share(command.bytes, worker, workers);
        if (part.first < part.last)
          memcpy(command.to + part.first, command.from + part.first, part.last - part.first);
        break;
      }
      case CpuCommand::Fill: {
        const Range part = byte_share(command.bytes, worker, workers);
        if (part.first < part.last) fill_words(command.to + part.first, command.word, part.last - part.first);
        break;
      }
      case CpuCommand::Barrier:
        if (worker == 0) turn.look(*barriers);
        pool_.meet();
        if (turn.gives_way[(*barriers)++ % 2].load(std::memory_order_relaxed)) {
          ++at->command;
          return false;
        }
        break;
      case CpuCommand::Signal:
        pool_.meet();
        if (worker == 0) reach(command);
        break;
      case CpuCommand::Replay: {
        Place inner = {at->in_graph};
        const bool whole = walk(command.graph->commands, turn, &inner, barriers, worker);
        at->in_graph = whole ? 0 : inner.command;
        if (!whole) return false;
        break;
      }
      case CpuCommand::WaitFor:  // CpuQueue::run handles it
        break;
    }
  }
  return true;
}

void CpuDevice::reach(const CpuCommand& signal) noexcept {
  const uint64_t now = now_ns();
  {
    const std::lock_guard<std::mutex> lock(order);
    signal.event->time_ns = now;
    signal.event->signalled = std::max(signal.event->signalled, signal.ticket);
  }
  changed->notify_all();
}

Status CpuQueue::run(std::unique_lock<std::mutex>& lock, const CpuCommand* until) {
  device.changed->wait(lock, [&] { return !busy; });
  busy = true;
  Status status;
  while (status.ok() && !(until && until->over())) {
    if (next == running.size()) {
      running.clear();
      next = 0;
      running.swap(submitted);
      if (running.empty()) break;
    }
    if (running[next].kind == CpuCommand::WaitFor) {
      status = await(running[next], lock);
      if (status.ok()) ++next;
      continue;
    }
    // Stop before a wait for another stream, so that the workers can run that stream.
    const auto from = running.begin() + next;
    const auto end =
        std::find_if(from, running.end(), [](const CpuCommand& c) { return c.kind == CpuCommand::WaitFor; });
    on_pool = true;
    lock.unlock();
    device.run({from, end});
    lock.lock();
    on_pool = false;
    next = size_t(end - running.begin());
  }
  busy = false;
  device.changed->notify_all();
  return status;
}

// The signal lies in another stream's queue. If that is idle, this thread runs it up to the signal. If
// another thread runs it or has still to submit it, this thread sleeps. A signal that can never come is an
// error. Waits form no circle, since a wait is for a signal that was recorded before it.
Status CpuQueue::await(const CpuCommand& command, std::unique_lock<std::mutex>& lock) {
  const std::thread::id self = std::this_thread::get_id();
  uint64_t deadline = now_ns() + kPatienceNs;
  while (!command.over()) {
    const std::shared_ptr<CpuQueue> other = command.queue.lock();
    if (!other) return {};  // its stream was closed after its submitted work had run
    if (!other->busy && other->has_work()) {
      GRETA_TRY(other->run(lock, &command));
      continue;
    }
    if (!other->busy && other->recorder == self)
      return fail(Code::Argument, "wait: for an event whose signal this thread recorded but did not submit");
    device.changed->wait_for(lock, std::chrono::milliseconds(100));
    if (other->on_pool) deadline = now_ns() + kPatienceNs;
    if (now_ns() > deadline)
      return fail(Code::Device, "wait: no event of another stream came for %llu s",
                  (unsigned long long)(kPatienceNs / 1'000'000'000));
  }
  return {};
}

}  // namespace greta
