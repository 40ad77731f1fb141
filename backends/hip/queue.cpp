// Gives batches to the driver, waits for them, and makes graphs of captures.
#include <algorithm>
#include <chrono>
#include <new>

#include "backends/hip/hip.h"

namespace greta {

constexpr uint64_t kSpinNs = 2'000'000;  // how long a wait asks without a pause
constexpr auto kPause = std::chrono::microseconds(20);

Status HipQueue::submit(std::vector<HipBatch>& batches) {
  const std::lock_guard<std::mutex> lock(mutex_);
  hold(batches);
  const Status status = pump();
  changed_->notify_all();
  return status;
}

// Submits held batches as long as there are some whose signals are submitted.
Status HipQueue::pump() {
  const HipCurrent current(device_.hip, device_.index());
  while (const std::optional<HipBatch> ready = take_ready()) {
    HipTimeline& timeline = *ready->done.timeline;
    GRETA_TRY(device_.usable());
    for (const HipPoint& point : ready->waits) GRETA_TRY(settle(*point.timeline));
    for (const HipCommand& command : ready->commands) GRETA_TRY(run(command, timeline));
    // A batch without a signal at its end gets a mark, since a wait for it must not wait for later ones.
    if (ready->commands.empty() || ready->commands.back().kind != HipCommand::kSignal)
      GRETA_TRY(mark_end(timeline));
  }
  return {};
}

// Signals timeline.end behind all that was given to the driver.
Status HipQueue::mark_end(HipTimeline& timeline) {
  if (timeline.marked) return {};
  const int error =
      outside_captures([&] { return device_.hip.hipEventRecord(timeline.end, timeline.stream); });
  if (error) device_.lose("hipEventRecord", error);
  GRETA_TRY(device_.result(error, "hipEventRecord"));
  timeline.marked = true;
  return {};
}

// True of answers that say nothing of this device's work: a capture of another thread does not allow the
// call.
static bool is_of_a_capture(int error) {
  return error == kHipCaptureUnsupported || error == kHipCaptureInvalidated;
}

// Calls the driver again, up to the limit of a wait, while it answers that another thread captures.
template <class Call>
int HipQueue::outside_captures(Call call) {
  const uint64_t deadline = now_ns() + device_.wait_limit_ns();
  int error = call();
  for (; is_of_a_capture(error) && now_ns() < deadline; error = call()) {
    (void)device_.hip.hipGetLastError();
    std::this_thread::sleep_for(kPause);
  }
  return error;
}

// A command that fails leaves its batch incomplete, so nothing that comes after it can be right.
Status HipQueue::run(const HipCommand& command, HipTimeline& timeline) {
  GRETA_TRY(note_unsettled(command, timeline));
  timeline.marked = false;
  const char* call = "";
  const int error = give(command, timeline, &call);
  if (error == kHipSuccess) return {};
  device_.lose(call, error);
  const Status status = device_.result(error, call);
  return command.kind == HipCommand::kLaunch ? within(status, "%s", command.kernel->name) : status;
}

// Calls the driver for one command. `call` gets the name of the function.
int HipQueue::give(const HipCommand& command, HipTimeline& timeline, const char** call) {
  switch (command.kind) {
    case HipCommand::kLaunch:
    case HipCommand::kCopy:
    case HipCommand::kFill:
      return outside_captures([&] { return work(command, timeline.stream, call); });
    case HipCommand::kSignal:
      *call = "hipEventRecord";
      return outside_captures(
          [&] { return device_.hip.hipEventRecord(command.event->handle, timeline.stream); });
    case HipCommand::kWait:
      *call = "hipStreamWaitEvent";
      return outside_captures(
          [&] { return device_.hip.hipStreamWaitEvent(timeline.stream, command.event->handle, 0); });
    case HipCommand::kReplay:
      break;
  }
  int error = kHipSuccess;
  if (replay_persistent(command, timeline, &error, call)) return error;
  for (const HipCommand& captured : command.graph->commands)
    if ((error = outside_captures([&] { return work(captured, timeline.stream, call); }))) return error;
  if (!command.graph->handle) return kHipSuccess;
  if (std::ranges::find(timeline.in_flight, command.graph) == timeline.in_flight.end())
    timeline.in_flight.push_back(command.graph);
  *call = "hipGraphLaunch";
  return outside_captures([&] { return device_.hip.hipGraphLaunch(command.graph->handle, timeline.stream); });
}

int HipQueue::work(const HipCommand& command, void* stream, const char** call) {
  if (command.kind == HipCommand::kCopy) {
    *call = "hipMemcpyAsync";
    return device_.hip.hipMemcpyAsync(command.to, command.from, command.bytes, command.direction, stream);
  }
  if (command.kind == HipCommand::kFill) {
    *call = "hipMemsetD32Async";
    return device_.hip.hipMemsetD32Async(command.to, int(command.word), command.bytes / 4, stream);
  }
  *call = "hipModuleLaunchKernel";
  size_t bytes = command.block_bytes;
  void* extra[] = {kHipLaunchBuffer, const_cast<uint8_t*>(command.block), kHipLaunchBytes, &bytes,
                   kHipLaunchEnd};
  return device_.hip.hipModuleLaunchKernel(command.kernel->function, command.groups[0], command.groups[1],
                                           command.groups[2], command.kernel->threads, 1, 1, 0, stream,
                                           nullptr, bytes ? extra : nullptr);
}

// A refusal costs speed alone: the graph then keeps its commands, and a replay gives them one by one.
Status HipQueue::capture(HipGraph& graph) {
  const std::lock_guard<std::mutex> lock(mutex_);
  GRETA_TRY(device_.usable());
  const HipCurrent current(device_.hip, device_.index());
  make_persistent(graph);
  if (!device_.makes_graphs()) return {};
  const char* call = "";
  const int error = make_graph(graph, &call);
  if (error == kHipSuccess) {
    graph.commands.clear();
    graph.commands.shrink_to_fit();
    return {};
  }
  (void)device_.result(error, call);
  device_.log()(warned_ ? LogLevel::Debug : LogLevel::Warning,
                "%s takes no graph of a plan, whose %zu commands are given one by one: %s",
                device_.info().name, graph.commands.size(), error_text());
  warned_ = true;
  clear_error_text();
  return {};
}

// Before HIP 7.14 captures of two threads give their nodes equal numbers, and the runtime drops some. So
// all devices of the process take turns.
static std::unique_lock<std::mutex> turn_to_capture(int version) {
  constexpr int kNumbersNodesRight = 71400000;
  static auto& turn = *new std::mutex;
  return version < kNumbersNodesRight ? std::unique_lock(turn) : std::unique_lock<std::mutex>();
}

// The stream of a capture has no work of its own, and lives no longer: an idle one may cost power, and what a
// failed capture leaves of it is not known.
int HipQueue::make_graph(HipGraph& graph, const char** call) {
  const HipLibrary& hip = device_.hip;
  const std::unique_lock<std::mutex> turn = turn_to_capture(hip.version());
  HipDriverStream stream(device_);
  *call = "hipStreamCreateWithFlags";
  if (const int error = hip.hipStreamCreateWithFlags(&stream.handle, kHipNonBlockingStream)) return error;
  *call = "hipStreamBeginCapture";
  if (const int error = hip.hipStreamBeginCapture(stream.handle, kHipCaptureOfThread)) return error;
  int error = kHipSuccess;
  for (size_t i = 0; i < graph.commands.size() && !error; ++i)
    error = work(graph.commands[i], stream.handle, call);
  void* captured = nullptr;
  const int ended = hip.hipStreamEndCapture(stream.handle, &captured);
  if (!error) {
    *call = "hipStreamEndCapture";
    error = ended;
  }
  if (!error) {
    *call = "hipGraphInstantiate";
    error = hip.hipGraphInstantiate(&graph.handle, captured, nullptr, nullptr, 0);
    if (error) graph.handle = nullptr;
  }
  if (captured && !ended) (void)hip.hipGraphDestroy(captured);
  return error;
}

// Asks instead of calling the driver's own wait, which never returns from a device that hangs. Only the time
// between the questions counts against the limit.
Status HipQueue::wait(const HipPoint& point, const HipEvent* event) {
  GRETA_TRY(device_.usable());
  GRETA_TRY(wait_submitted(point, [&] { return device_.usable(); }));
  HipTimeline& timeline = *point.timeline;
  const uint64_t submitted = submitted_by(timeline);
  if (submitted < point.value) return {};  // its stream was closed before it came
  for (bool again = true; again;) {
    if (!event) {
      const std::lock_guard<std::mutex> lock(mutex_);
      const HipCurrent current(device_.hip, device_.index());
      GRETA_TRY(mark_end(timeline));
    }
    GRETA_TRY(poll(event ? event->handle : timeline.end));
    GRETA_TRY(look_at_persistent(timeline, &again));
  }
  if (!event) forget_graphs(timeline, submitted);
  return device_.usable();
}

// hipStreamQuery is not used: it may put a marker of its own into the queue each time.
Status HipQueue::poll(void* event) {
  const HipCurrent current(device_.hip, device_.index());
  for (uint64_t paused = 0;;) {
    const int answer = device_.hip.hipEventQuery(event);
    if (answer == kHipSuccess) return {};
    (void)device_.hip.hipGetLastError();
    if (answer != kHipNotReady && !is_of_a_capture(answer)) {
      device_.lose("hipEventQuery", answer);
      return device_.result(answer, "hipEventQuery");
    }
    GRETA_TRY(device_.usable());
    const uint64_t begin = now_ns();
    if (paused < kSpinNs)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(kPause);
    paused += now_ns() - begin;
    if (paused > device_.wait_limit_ns()) {
      if (is_of_a_capture(answer)) return device_.result(answer, "hipEventQuery");
      device_.lose("a wait without end", kHipLaunchTimeOut);
      return device_.usable();
    }
  }
}

// The stream was idle when batch `submitted` was its last.
void HipQueue::forget_graphs(HipTimeline& timeline, uint64_t submitted) {
  std::vector<std::shared_ptr<HipGraph>> done;  // destroyed without the lock
  const std::lock_guard<std::mutex> lock(mutex_);
  if (timeline.submitted == submitted) done.swap(timeline.in_flight);
}

void HipQueue::close(HipTimeline& timeline) {
  const std::lock_guard<std::mutex> lock(mutex_);
  forget(timeline);
  (void)pump();  // if batches that waited for this stream cannot be submitted, their own wait reports it
  changed_->notify_all();
}

bool HipQueue::reached(const HipEvent& event) {
  const HipPoint point = event_point(event);
  if (!point.timeline || submitted_by(*point.timeline) < point.value || !device_.usable().ok()) return false;
  const HipCurrent current(device_.hip, device_.index());
  return device_.hip.hipEventQuery(event.handle) == kHipSuccess;
}

}  // namespace greta
