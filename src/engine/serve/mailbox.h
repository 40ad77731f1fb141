// How the thread that runs a service and the threads that use it speak to each other.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "engine/serve/cancellation.h"
#include "engine/session/session.h"

namespace greta {

// Wakes the thread that runs a service. It may be rung from any thread.
class Doorbell {
 public:
  void ring() {
    const std::lock_guard<std::mutex> lock(mutex_);
    rung_ = true;
    wake_.notify_one();
  }
  void wait() {  // until it was rung since the last wait
    std::unique_lock<std::mutex> lock(mutex_);
    const Cancellable cancellable;
    wake_.wait(lock, [&] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  bool rung_ = false;
};

struct RequestResult : WritingResult {
  Status status;                     // the rest is valid also where this is a failure
  char error[kErrorTextBytes] = "";  // its sentence
  uint32_t cached_tokens = 0;
  uint32_t tool_calls = 0;  // that the answer has
  uint32_t set_back = 0;    // how often it lost its pages to an older request and read its text anew
  uint64_t queued_ns = 0;
};

struct Likely {  // a token with the logarithm of its probability, before any sampling step
  int32_t token = kNoToken;
  float logprob = 0;
};

// How far a request is.
struct RequestProgress {
  enum class State : uint8_t { Waiting, Reading, Writing, Paused, Ended } state = State::Waiting;
  uint32_t prompt_tokens = 0,
           read_tokens = 0;  // read_tokens also counts those of an answer that is read anew
  uint32_t cached_tokens = 0, generated_tokens = 0, reasoning_tokens = 0, set_back = 0;
  bool operator==(const RequestProgress&) const = default;
};

struct RequestEvent {
  enum class Kind : uint8_t {
    Text,
    Reasoning,
    ToolCall,
    Prompt,
    Embedding,
    Start,
    Progress,
    CallStart,
    CallPiece
  };
  Kind kind = Kind::Text;
  // Each token that is drawn comes with one event. kNoToken: a further event of the same token, or text that
  // was held back until the end. Prompt: the token of the prompt whose probability this is.
  Likely token;
  std::string text;
  ChatCall call;
  std::vector<Likely> top;       // the likeliest tokens, where they were asked for
  std::vector<float> embedding;  // of the whole prompt
  RequestProgress progress;      // Start, Progress
};

// Tells a program that there is something to read.
struct Wake {
  void (*call)(void* user, void* request_user) = nullptr;  // null: nobody is told
  void* user = nullptr;
  void* request_user = nullptr;
};

// Events in the order in which they came. Where they are read as fast as they come it keeps its memory.
class EventQueue {
 public:
  bool empty() const { return first_ == events_.size(); }
  size_t size() const { return events_.size() - first_; }
  RequestEvent& back() { return events_.back(); }
  void pop_back() { events_.pop_back(); }
  void push(RequestEvent&& event) {
    if (first_ > events_.size() / 2) {
      events_.erase(events_.begin(), events_.begin() + std::ptrdiff_t(first_));
      first_ = 0;
    }
    events_.push_back(std::move(event));
  }
  void pop(RequestEvent* out) {
    *out = std::move(events_[first_++]);
    if (!empty()) return;
    events_.clear();
    first_ = 0;
    if (events_.capacity() > kKept) events_.shrink_to_fit();
  }

 private:
  static constexpr size_t kKept = 8;
  std::vector<RequestEvent> events_;
  size_t first_ = 0;  // those before it were read
};

// What has come of a request and was not read yet. One thread writes; any thread reads.
class Mailbox {
 public:
  // wake: called by the writer when there is something to read again: an event in an empty box, by tell(), or
  // the end
  Mailbox(size_t capacity, std::shared_ptr<Doorbell> writer, const Wake& wake = {})
      : capacity_(capacity), writer_(std::move(writer)), wake_(wake) {}

  // How long the reader has left more than half of the box unread.
  uint64_t unread_ns(uint64_t now) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const bool crowded = events_.size() > capacity_ / 2;
    return crowded && now > crowded_since_ns_ ? now - crowded_since_ns_ : 0;
  }

  // The writer's side. A full box takes further events, but its request makes none until it is read.
  bool full() const { return unread_.load(std::memory_order_relaxed) >= capacity_; }
  bool half_read() const { return unread_.load(std::memory_order_relaxed) <= capacity_ / 2; }
  void put(RequestEvent event);  // of two Progress events that nobody has read, the first one goes
  // Wakes the reader where something was put into an empty box. Apart from put(), so that results of a step
  // are put into many boxes before the first reader runs: it finds all of them, and is not woken for each.
  void tell();
  void end(const RequestResult& result);
  void note(const RequestProgress& progress) {
    const std::lock_guard<std::mutex> lock(mutex_);
    progress_ = progress;
  }

  // The reader's side. Gives the next event, or false if none comes within `timeout_ns` or ever. ~0: it waits
  // as long as that takes.
  // unread: how many come behind it now, the end included; may be null
  bool take(uint64_t timeout_ns, RequestEvent* out, uint32_t* unread = nullptr);
  bool ended(RequestResult* out);  // it has ended and every event was read
  RequestProgress progress(uint32_t* unread) {
    const std::lock_guard<std::mutex> lock(mutex_);
    *unread = uint32_t(events_.size());
    return progress_;
  }
  // `wake` is not called any more. Waits for a call of it that is under way, unless this is within that call.
  void silence();

 private:
  void call_wake();
  void wait(std::unique_lock<std::mutex>& lock, uint64_t timeout_ns);  // for an event, or the end

  const size_t capacity_;
  const std::shared_ptr<Doorbell> writer_;
  const Wake wake_;
  std::recursive_mutex wake_mutex_;  // held while wake_ is called
  bool silent_ = false;              // guarded by it
  std::mutex mutex_;
  std::condition_variable came_;
  EventQueue events_;
  std::atomic<size_t> unread_ = 0;  // in events_, for the writer, who needs no lock for it
  uint64_t crowded_since_ns_ = 0;  // since when more than half is unread, and nobody has read any
  RequestProgress progress_;
  RequestResult result_;
  bool ended_ = false;
  bool untold_ = false;  // the writer's: something was put into an empty box
};

}  // namespace greta
