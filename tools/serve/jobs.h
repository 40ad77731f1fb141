// Jobs: what runs in the service for the calls of clients, and the one thread that reads all their events.
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_set>
#include <vector>

#include "ask.h"
#include "http.h"

namespace greta::serve {

inline constexpr size_t kPage = 64;  // tokens of a page of the prefix cache

// How an API writes an answer. begin() is called on the thread that starts the job, all else on that of the
// jobs. `out` gathers the bytes of a stream, which are sent together.
class Sink {
 public:
  virtual ~Sink() = default;
  virtual void begin(Reply&) {}  // The requests are taken: a stream may send its head.
  virtual void event(uint32_t index, const greta_request_event& event) = 0;
  virtual void ended(uint32_t index, const greta_request_result& result) = 0;
  virtual void failed(Reply& reply, const Refused& error) = 0;  // nothing comes after it
  virtual void done(Reply& reply) = 0;                          // all have ended
  std::string out;
  int slot = 0;  // of the request that was added last
  // The first token of the prompt that ended last by which it departs from a text that the server remembers;
  // 0 if there is none.
  uint32_t differs_at = 0;
};

struct JobItem {
  std::shared_ptr<const Ask> ask;
  uint64_t seed = 0;
};

// The context of W3C's traceparent, in hexadecimal letters.
struct Trace {
  std::string trace, parent;  // "": there is none
  bool sampled = true;        // who began the trace wants its spans
};

// A request that ended, for metrics, the log and spans.
struct Ended {
  std::string id;  // of its call
  Trace trace;
  greta_status status = GRETA_OK;
  std::string error;  // words, unless it ended well
  greta_request_result result;
  uint64_t first_token_ns = 0;  // from the call to the first token; 0: there was none
  uint64_t whole_ns = 0;
  uint32_t differs_at = 0;  // as in Sink
};

// A request that runs, for /slots.
struct Slot {
  uint32_t number = 0;  // the same from its first step to its end
  std::string id;       // of its call
  int64_t max_tokens = -1;
  greta_request_info info;
};

// What a slot remembers: the tokens of the request that ended in it last.
struct SlotText {
  std::vector<int32_t> tokens;
  uint64_t salt = 0;
};

class Jobs {
 public:
  // `together`: the most requests of one job that run at once.
  Jobs(std::function<void(const Ended&)> on_end, std::function<void(uint64_t)> on_gap);
  ~Jobs();
  // Before the service is opened, which then calls this; and after it.
  void listen(greta_service_options* options);
  void open(greta_service* service, uint32_t together);
  // Throws Refused if the first request is refused. Each item gets the events of its index.
  void start(const std::string& id, const Trace& trace, std::shared_ptr<Reply> reply,
             std::unique_ptr<Sink> sink, std::vector<JobItem> items);
  void cancel_all();
  void close();  // cancels all and ends the thread
  size_t active() const { return active_; }
  std::vector<Slot> slots();  // those that run, and not those that wait
  SlotText slot_text(uint32_t number);
  void set_slot_text(uint32_t number, SlotText text);

 private:
  using Clock = std::chrono::steady_clock;
  struct Job;
  struct Running {
    std::shared_ptr<Job> job;
    greta_request* request = nullptr;
    uint32_t index = 0;
    Clock::time_point began, last;
    uint64_t first_ns = 0;
    int slot = -1;   // that remembers its text; -1: none does
    int shown = -1;  // its number for /slots; -1: none yet
    bool taken = false, noted = false;  // it is in all_; in ready_
  };
  struct Job : Watcher, std::enable_shared_from_this<Job> {
    Jobs* jobs = nullptr;
    std::string id;
    Trace trace;
    std::shared_ptr<Reply> reply;
    std::unique_ptr<Sink> sink;
    std::vector<JobItem> items;
    std::vector<Running*> running;
    size_t next = 0;        // of the items
    bool over = false;      // nothing is written any more
    bool finished = false;  // all of its requests are closed
    bool starved = false;   // it is in starved_
    std::atomic<bool> left{false};
    void gone() override;
    void drained() override;
  };

  struct Place {  // a slot
    uint32_t users = 0;
    uint64_t used = 0;  // when it was taken last, as a count
    SlotText text;
  };

  greta_status add(const std::shared_ptr<Job>& job);
  int take_slot(const Ask& ask);
  void leave_slot(const Running& running, bool ended_well);
  uint32_t departure(const Running& running, uint32_t prompt_tokens);
  void run();
  bool read(Running* running);  // false: it is over
  void finish(Running* running);
  void fail(Job* job, const Refused& error);
  void refill(const std::shared_ptr<Job>& job);
  void cancel(Job* job);
  void note_ready(Running* running);
  void take_up(Running* running);
  void note(Running* running);

  std::function<void(const Ended&)> on_end_;
  std::function<void(uint64_t)> on_gap_;
  greta_service* service_ = nullptr;
  uint32_t together_ = 1;
  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::vector<Running*> ready_;  // under the mutex, as are the next three; each once
  std::unordered_set<Running*> all_;
  std::vector<std::shared_ptr<Job>> cancelled_, drained_,
      starved_;  // starved: there was no place for an item
  std::vector<Place> places_;
  uint64_t taken_ = 0;
  bool closing_ = false, cancel_all_ = false;
  std::atomic<size_t> active_{0};
};

// What the last call of the library on this thread failed with.
Refused refusal_of(greta_status status);

}  // namespace greta::serve
