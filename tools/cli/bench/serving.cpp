#include "bench/serving.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "bench/tokens.h"
#include "console.h"

namespace greta::cli {
namespace {

using Clock = std::chrono::steady_clock;

double seconds(Clock::duration time) { return std::chrono::duration<double>(time).count(); }

using tools::Request;
using tools::Service;

// Texts that begin differently, so that none is in the cache.
std::vector<int32_t> text_of(uint32_t vocab_size, uint32_t count, uint32_t number) {
  return some_tokens(vocab_size, std::max(count, 1u), number);
}

Request send(greta_service* service, const std::vector<int32_t>& tokens, uint32_t max_tokens) {
  auto options = sized<greta_request_options>();
  options.tokens = tokens.data();
  options.token_count = tokens.size();
  options.max_tokens = max_tokens;
  options.ignore_end = 1;
  options.no_cache = 1;
  greta_request* request = nullptr;
  check(greta_service_add(service, &options, &request));
  return Request(request);
}

// When each token of an answer came.
std::vector<Clock::time_point> token_times(greta_request* request) {
  std::vector<Clock::time_point> times;
  auto event = sized<greta_request_event>();
  for (;;) {
    check(greta_request_next(request, UINT64_MAX, &event));
    if (event.kind == GRETA_EVENT_END) break;
    if (event.token >= 0) times.push_back(Clock::now());
  }
  check(greta_request_finish(request, nullptr));
  return times;
}

double percentile(std::vector<double>& values, double part) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[std::min(values.size() - 1, static_cast<size_t>(part * static_cast<double>(values.size())))];
}

// What the streams of a test have seen; its threads add to it.
struct Seen {
  std::mutex mutex;
  std::vector<double> gaps_s, first_s;
  std::string error;

  void fail(const char* what) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (error.empty()) error = what;
  }
  void add_gaps(const std::vector<Clock::time_point>& times, Clock::time_point begin, Clock::time_point end) {
    const std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 1; i < times.size(); ++i)
      if (times[i] > begin && times[i - 1] < end) gaps_s.push_back(seconds(times[i] - times[i - 1]));
  }
};

ServeNumbers summary(Seen& seen) {
  if (!seen.error.empty()) throw Failed(seen.error);
  ServeNumbers numbers;
  numbers.gap_p50_ms = 1e3 * percentile(seen.gaps_s, 0.5);
  numbers.gap_p99_ms = 1e3 * percentile(seen.gaps_s, 0.99);
  numbers.first_p50_ms = 1e3 * percentile(seen.first_s, 0.5);
  numbers.first_p99_ms = 1e3 * percentile(seen.first_s, 0.99);
  return numbers;
}

template <class Body>
std::vector<std::thread> start_streams(uint32_t count, Seen& seen, Body body) {
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < count; ++i)
    threads.emplace_back([&seen, body, i] {
      try {
        body(i);
      } catch (const std::exception& error) {
        seen.fail(error.what());
      }
    });
  return threads;
}

void join_all(std::vector<std::thread>& threads) {
  for (std::thread& thread : threads) thread.join();
}

// All streams begin together. The speed of generating counts from when the last of them has its first token
// until one ends.
void run_together(greta_service* service, uint32_t vocab, const ServeTest& test, uint32_t run, Seen& seen,
                  std::vector<double>* prompt_ts, std::vector<double>* generate_ts) {
  std::vector<std::vector<Clock::time_point>> times(test.streams);
  std::vector<Request> requests;
  const Clock::time_point begin = Clock::now();
  for (uint32_t i = 0; i < test.streams; ++i)
    requests.push_back(send(service, text_of(vocab, test.prompt, run * test.streams + i), test.generate));
  auto threads =
      start_streams(test.streams, seen, [&](uint32_t i) { times[i] = token_times(requests[i].get()); });
  join_all(threads);
  if (!seen.error.empty() || run == 0) return;  // the first run warms up
  Clock::time_point all_began = begin, one_ended = Clock::time_point::max();
  for (const auto& stream : times) {
    all_began = std::max(all_began, stream.front());
    one_ended = std::min(one_ended, stream.back());
    seen.first_s.push_back(seconds(stream.front() - begin));
    seen.add_gaps(stream, begin, Clock::time_point::max());
  }
  size_t tokens = 0;
  for (const auto& stream : times)
    for (const Clock::time_point time : stream) tokens += time > all_began && time <= one_ended;
  prompt_ts->push_back(std::max(test.prompt, 1u) * test.streams / seconds(all_began - begin));
  if (tokens > 0) generate_ts->push_back(static_cast<double>(tokens) / seconds(one_ended - all_began));
}

// Streams go on, one text after the other, while prompts arrive one after the other.
void run_mix(greta_service* service, uint32_t vocab, const ServeTest& test, Seen& seen,
             std::vector<double>* prompt_ts, double* alone_ts) {
  const auto ask = [&](uint32_t number) {
    const std::vector<int32_t> tokens = text_of(vocab, test.prompt, number);
    const Clock::time_point begin = Clock::now();
    const Request request = send(service, tokens, 1);
    return seconds(token_times(request.get()).at(0) - begin);
  };
  ask(1);  // warms up
  *alone_ts = test.prompt / ask(2);
  std::atomic<bool> over = false;
  std::atomic<uint32_t> began = 0;
  std::mutex mutex;
  Clock::time_point from = Clock::time_point::max();
  constexpr uint32_t kStreamPrompt = 16;
  auto threads = start_streams(test.streams, seen, [&](uint32_t i) {
    for (uint32_t number = 0; !over; ++number) {
      const Request request =
          send(service, text_of(vocab, kStreamPrompt, 1000 * (i + 1) + number), test.generate);
      std::vector<Clock::time_point> times;
      auto event = sized<greta_request_event>();
      do {
        check(greta_request_next(request.get(), UINT64_MAX, &event));
        if (event.token >= 0) times.push_back(Clock::now());
        if (times.size() == 2 && number == 0 && event.token >= 0) ++began;
        if (over) greta_request_cancel(request.get());
      } while (event.kind != GRETA_EVENT_END);
      Clock::time_point begin;
      {
        const std::lock_guard<std::mutex> lock(mutex);
        begin = from;
      }
      seen.add_gaps(times, begin, Clock::time_point::max());
    }
  });
  while (began < test.streams && seen.error.empty())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  {
    const std::lock_guard<std::mutex> lock(mutex);
    from = Clock::now();
  }
  double prompts_s = 0;
  for (uint32_t i = 0; i < test.repetitions; ++i) {
    seen.first_s.push_back(ask(10 + i));
    prompts_s += seen.first_s.back();
  }
  prompt_ts->push_back(static_cast<double>(test.prompt) * test.repetitions / prompts_s);
  over = true;
  join_all(threads);
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

std::string test_name(const ServeTest& test) {
  if (test.mix) return format("pp%u beside x%u", test.prompt, test.streams);
  return test_name(test.prompt, test.generate, 0) + format(" x%u", test.streams);
}

ServeNumbers measure(greta_model* model, const greta_model_info& info, const ContextOptions& context,
                     const ServeTest& test) {
  greta_executor_options sizes = executor_options(context, info.context, 0);
  const uint32_t of_stream = (test.mix ? 16 : std::max(test.prompt, 1u)) + test.generate + 64;
  sizes.context = std::max(of_stream, test.prompt + 64);
  sizes.sequences = test.streams + (test.mix ? 1 : 0);
  sizes.cache_tokens = of_stream * test.streams + (test.mix ? test.prompt + 64 : 0);
  sizes.compile_ahead = 1;
  auto options = sized<greta_service_options>();
  options.own_thread = 1;
  options.executor = &sizes;
  options.event_capacity = 4096;
  options.step_ms = test.step_ms;
  greta_service* opened = nullptr;
  check(greta_service_open(model, &options, &opened));
  const Service service(opened);
  Seen seen;
  std::vector<double> prompt_ts, generate_ts;
  double alone_ts = 0;
  if (test.mix)
    run_mix(opened, info.vocab_size, test, seen, &prompt_ts, &alone_ts);
  else
    for (uint32_t run = 0; run <= test.repetitions && seen.error.empty(); ++run)
      run_together(opened, info.vocab_size, test, run, seen, &prompt_ts, &generate_ts);
  ServeNumbers numbers = summary(seen);
  numbers.prompt_ts = mean_of(prompt_ts);
  numbers.generate_ts = mean_of(generate_ts);
  numbers.alone_ts = alone_ts;
  return numbers;
}

}  // namespace greta::cli
