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

struct Graph {
  std::vector<Task> tasks;
  bool invalid = false;  // a call was made that a capture does not allow
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
void begin_capture(Stream& stream);
Graph* end_capture(Stream& stream);
// Asked by calls that a capture of the same thread does not allow, which make it invalid.
bool this_thread_captures();

// What runs a task that never ends, and every task behind it.
constexpr char kHangs[] = "hangs";

}  // namespace mock_hip
