// Streams that defer their work. A task runs when the host waits for it, or when a stream holds too many, in
// an order that the seed chooses among those which the streams and events allow. So a program that does not
// wait reads what was there before.
#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace mock_hip {

// The one lock of the runtime. Every call of the API takes it.
extern std::recursive_mutex runtime_mutex;

// A signal that was recorded into a stream.
struct Signal {
  struct Stream* stream = nullptr;
  bool done = false;
  uint64_t at_ns = 0;  // when it was done
};

struct Event {
  bool timed = true;
  std::shared_ptr<Signal> last;
};

// A graph that replays share. It may not be destroyed while they run.
struct Exec;

struct Task {
  std::function<std::string()> run;  // does the work, and returns what is wrong
  std::shared_ptr<Signal> waits_for;
  std::shared_ptr<Signal> signals;
  Exec* last_of = nullptr;
};

// How a capture forbids calls, and how a thread is forbidden them: values of hipStreamCaptureMode.
enum CaptureMode : int { kGlobal = 0, kOfThread = 1, kRelaxed = 2 };

struct Graph {
  std::vector<Task> tasks;
  int mode = kGlobal;
  std::thread::id owner;
  bool invalid = false;     // a call was made that a capture does not allow
  bool overlapped = false;  // another capture was under way at the same time
};

struct Exec {
  std::vector<Task> tasks;
  uint64_t in_flight = 0;
};

struct Stream {
  int device = 0;
  std::deque<Task> tasks;
  Graph* capture = nullptr;
  int error = 0;  // every later call of the stream answers it
  std::string wrong;
};

Stream* new_stream(int device);
void delete_stream(Stream* stream);

void give(Stream& stream, Task task);     // into the stream, or into the graph that it captures
bool step_towards(Stream& stream);        // runs one task that lets `stream` go on; false if there is none
int finish(Stream& stream);               // runs all of it; its error
int finish_all();                         // runs all of all streams; the first error
int finish_signal(const Signal& signal);  // runs until it is done
void begin_capture(Stream& stream, int mode);
Graph* end_capture(Stream& stream);
int exchange_capture_mode(int mode);  // of the calling thread; the one before
// Asked by calls that captures of the same thread do not allow, nor those of others in the global mode. The
// call makes such a capture invalid.
bool forbidden_by_a_capture();
size_t stream_count();  // of streams that are open

// What runs a task that never ends, and every task behind it.
constexpr char kHangs[] = "hangs";

}  // namespace mock_hip
