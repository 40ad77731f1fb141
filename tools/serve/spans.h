// Spans of requests, which are sent to a collector of OpenTelemetry as JSON over HTTP (OTLP).
#pragma once
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "jobs.h"

namespace greta::serve {

// The context of "00-TRACE-PARENT-FLAGS"; an empty one if that is no traceparent.
Trace trace_of(const std::string& header);

// A request is a span with the spans "queue", "prompt" and "answer" in it, and has counts, but none of its
// text. One thread sends what has gathered; a collector that does not answer loses spans and holds up
// nobody.
class Spans {
 public:
  // Throws std::runtime_error if `url` is not http://HOST[:PORT][/PATH].
  Spans(const std::string& url, std::function<void(const std::string&)> say);
  ~Spans();
  void add(const std::string& model, const Ended& ended);
  uint64_t lost() const { return lost_; }  // since nobody took them

 private:
  void run();
  bool send(const std::string& body, std::string* why) const;

  std::string host_, port_, path_;
  std::function<void(const std::string&)> say_;
  std::mutex mutex_;
  std::condition_variable woken_;
  std::deque<Json> waiting_;
  bool closing_ = false;
  std::atomic<uint64_t> lost_{0};
  std::thread thread_;
};

}  // namespace greta::serve
