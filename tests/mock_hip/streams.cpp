#include "tests/mock_hip/streams.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/mock_hip/orders.h"

namespace mock_hip {

std::recursive_mutex runtime_mutex;

constexpr size_t kMostTasks = 4096;  // of a stream; more make the host wait

static std::vector<Stream*>& streams() {
  static std::vector<Stream*> all;
  return all;
}

Stream* new_stream(int device) {
  auto* stream = new Stream;
  stream->device = device;
  streams().push_back(stream);
  return stream;
}

void delete_stream(Stream* stream) {
  std::erase(streams(), stream);
  delete stream;
}

static uint64_t random_number() {
  static uint64_t state = 0, seed = ~uint64_t(0);
  const uint64_t now = number("MOCK_HIP_SEED", 0);
  if (now != seed) seed = now, state = now * 0x9e3779b97f4a7c15u + 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

static bool is_ready(const Stream& stream) {
  if (stream.tasks.empty() || stream.error) return false;
  const Task& task = stream.tasks.front();
  return !task.waits_for || task.waits_for->done;
}

static uint64_t now_ns() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return uint64_t(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

static void run_first(Stream& stream) {
  const Task task = std::move(stream.tasks.front());
  stream.tasks.pop_front();
  std::string wrong = task.run ? task.run() : "";
  if (wrong == kHangs) {
    stream.error = kNotReady;
  } else if (!wrong.empty()) {
    stream.error = kLaunchFailure;
    stream.wrong = wrong;
  } else if (task.signals) {
    task.signals->done = true;
    task.signals->at_ns = now_ns();
  }
  if (task.last_of && wrong != kHangs) --task.last_of->in_flight;
}

// Runs the first task of `stream`, or of the stream that it waits for. With a seed other streams may come
// first.
bool step_towards(Stream& stream) {
  if (number("MOCK_HIP_SEED", 0)) {
    std::vector<Stream*> ready;
    for (Stream* other : streams())
      if (is_ready(*other)) ready.push_back(other);
    if (!ready.empty() && random_number() % 4 == 0)
      return run_first(*ready[random_number() % ready.size()]), true;
  }
  Stream* at = &stream;
  for (size_t hops = 0; hops <= streams().size(); ++hops) {
    if (is_ready(*at)) return run_first(*at), true;
    if (at->tasks.empty() || at->error) return false;
    at = at->tasks.front().waits_for->stream;
  }
  return false;  // they wait for each other
}

int finish(Stream& stream) {
  while (!stream.tasks.empty() && !stream.error)
    if (!step_towards(stream)) return kNotReady;
  return stream.error;
}

int finish_all() {
  int error = kSuccess;
  for (size_t i = 0; i < streams().size(); ++i)
    if (const int one = finish(*streams()[i]); one && !error) error = one;
  return error;
}

int finish_signal(const Signal& signal) {
  while (!signal.done) {
    if (signal.stream->error) return signal.stream->error;
    if (!step_towards(*signal.stream)) return kNotReady;
  }
  return kSuccess;
}

void give(Stream& stream, Task task) {
  if (stream.capture) return stream.capture->tasks.push_back(std::move(task));
  stream.tasks.push_back(std::move(task));
  while (stream.tasks.size() > kMostTasks && step_towards(stream)) {
  }
}

size_t stream_count() { return streams().size(); }

static std::vector<Graph*>& captures() {
  static std::vector<Graph*> all;
  return all;
}

void begin_capture(Stream& stream, int mode) {
  stream.capture = new Graph;
  stream.capture->mode = mode;
  stream.capture->owner = std::this_thread::get_id();
  captures().push_back(stream.capture);
  if (captures().size() > 1)
    for (Graph* graph : captures()) graph->overlapped = true;
}

Graph* end_capture(Stream& stream) {
  std::erase(captures(), stream.capture);
  return std::exchange(stream.capture, nullptr);
}

static thread_local int mode_of_thread = kGlobal;

int exchange_capture_mode(int mode) { return std::exchange(mode_of_thread, mode); }

bool forbidden_by_a_capture() {
  bool forbidden = false;
  for (Graph* graph : captures()) {
    const bool own = graph->owner == std::this_thread::get_id();
    if (mode_of_thread == kRelaxed || graph->mode == kRelaxed) continue;
    if (!own && (graph->mode != kGlobal || mode_of_thread != kGlobal)) continue;
    graph->invalid = forbidden = true;
  }
  return forbidden;
}

}  // namespace mock_hip
