// greta-bench-serve: sends completions to a server over HTTP and measures what a client sees. The figures
// have the names of `vllm bench serve`. It speaks OpenAI's /v1/completions, so other servers are measured
// alike.
#include <netdb.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

constexpr double kSilence = 600;  // seconds after which an answer is given up

struct Options {
  std::string host = "127.0.0.1", port = "8080", socket, model = "any", key;
  uint32_t requests = 64, concurrency = 8, prompt_tokens = 128, shared_tokens = 0, output_tokens = 128;
  uint32_t vocab = 32000, seed = 0, threads = 1;
  bool as_json = false;
};

// What a client saw of one request. Times are seconds since it was sent.
struct Seen {
  double first = 0, end = 0;
  std::vector<double> gaps;  // between pieces of the answer
  uint32_t prompt_tokens = 0, output_tokens = 0;
};

double since(Clock::time_point begun) { return std::chrono::duration<double>(Clock::now() - begun).count(); }

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

// A connection, read by lines and by counts of bytes, as far as they have come.
class Connection {
 public:
  explicit Connection(const Options& o) : fd_(o.socket.empty() ? over_tcp(o) : over_file(o.socket)) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(fd_); }

  int fd() const { return fd_; }
  void send(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(fd_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) fail(std::string("cannot send: ") + strerror(errno));
      at += size_t(sent);
    }
  }
  // A line without its end, "\r\n" or "\n".
  bool line(std::string* out) {
    const size_t end = held_.find('\n', at_);
    if (end == std::string::npos) return false;
    out->assign(held_, at_, end - at_);
    at_ = end + 1;
    if (!out->empty() && out->back() == '\r') out->pop_back();
    return true;
  }
  bool bytes(size_t count, std::string* out) {
    if (held_.size() - at_ < count) return false;
    out->assign(held_, at_, count);
    at_ += count;
    return true;
  }
  // Takes what has come, of which there is something.
  void more() {
    held_.erase(0, at_);
    at_ = 0;
    char piece[16384];
    const ssize_t got = recv(fd_, piece, sizeof piece, MSG_DONTWAIT);
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return;
    if (got <= 0)
      fail(got ? std::string("cannot read: ") + strerror(errno) : "the server closed the connection");
    held_.append(piece, size_t(got));
  }

 private:
  static int over_tcp(const Options& o) {
    addrinfo hints = {}, *found = nullptr;
    hints.ai_socktype = SOCK_STREAM;
    if (const int error = getaddrinfo(o.host.c_str(), o.port.c_str(), &hints, &found))
      fail(o.host + ": " + gai_strerror(error));
    const int fd = socket(found->ai_family, found->ai_socktype, 0);
    const bool open = fd >= 0 && connect(fd, found->ai_addr, found->ai_addrlen) == 0;
    const int error = errno;
    freeaddrinfo(found);
    if (!open) fail("cannot connect to " + o.host + ":" + o.port + ": " + strerror(error));
    return fd;
  }
  static int over_file(const std::string& path) {
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) fail(path + ": too long for the name of a socket");
    memcpy(address.sun_path, path.c_str(), path.size() + 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    if (fd < 0 || connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0)
      fail("cannot connect to " + path + ": " + strerror(errno));
    return fd;
  }

  int fd_;
  std::string held_;
  size_t at_ = 0;
};

// Takes the lines of an answer that streams.
class Answer {
 public:
  Answer(Clock::time_point begun, Seen* seen) : begun_(begun), seen_(*seen) {}
  // A part of the body, which may end within a line.
  void take(const std::string& part) {
    rest_ += part;
    for (size_t end; (end = rest_.find('\n')) != std::string::npos; rest_.erase(0, end + 1))
      if (rest_.starts_with("data: {")) take_event(rest_.substr(6, end - 6));
  }

 private:
  void take_event(const std::string& text) {
    const double now = since(begun_);
    const json event = json::parse(text);
    if (event.contains("error")) fail("the server answers " + text);
    const bool piece = event.contains("choices") && !event["choices"].empty() &&
                       !event["choices"][0].value("text", std::string()).empty();
    if (piece && seen_.first == 0)
      seen_.first = now;
    else if (piece)
      seen_.gaps.push_back(now - last_);
    if (piece) last_ = now;
    if (event.contains("usage") && event["usage"].is_object()) {
      seen_.prompt_tokens = event["usage"].value("prompt_tokens", 0u);
      seen_.output_tokens = event["usage"].value("completion_tokens", 0u);
    }
  }

  Clock::time_point begun_;
  Seen& seen_;
  double last_ = 0;
  std::string rest_;
};

std::string request_text(const Options& o, uint32_t number) {
  std::vector<uint32_t> prompt(o.prompt_tokens);
  for (uint32_t at = 0; at < o.prompt_tokens; ++at) {
    const bool shared = at < o.shared_tokens;
    std::mt19937 random(o.seed * 7919 + at * 31 + (shared ? 0 : (number + 1) * 104729));
    prompt[at] = 300 + random() % (o.vocab - 300);
  }
  const json body = {{"model", o.model},
                     {"prompt", prompt},
                     {"max_tokens", o.output_tokens},
                     {"temperature", 0.8},
                     {"seed", number},
                     {"ignore_eos", true},
                     {"stream", true},
                     {"stream_options", {{"include_usage", true}}}};
  const std::string text = body.dump();
  std::string head = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
  if (!o.key.empty()) head += "Authorization: Bearer " + o.key + "\r\n";
  return head + "Content-Length: " + std::to_string(text.size()) + "\r\nConnection: close\r\n\r\n" + text;
}

// One request under way.
class Request {
 public:
  Request(const Options& o, uint32_t number)
      : text_(request_text(o, number)), connection_(o), begun_(Clock::now()), answer_(begun_, &seen_) {
    connection_.send(text_);
  }
  int fd() const { return connection_.fd(); }
  Clock::time_point heard() const { return heard_; }
  // Takes what has come of the answer. Returns true when it has ended.
  bool advance() {
    heard_ = Clock::now();
    connection_.more();
    while (take()) {
      if (state_ != State::Ended) continue;
      seen_.end = since(begun_);
      if (seen_.first == 0) fail("an answer without a text");
      if (seen_.output_tokens == 0) seen_.output_tokens = uint32_t(seen_.gaps.size() + 1);
      return true;
    }
    return false;
  }
  Seen& seen() { return seen_; }

 private:
  enum class State { Status, Head, Size, Piece, AfterPiece, Ended };

  // The next part of the answer, if it is there.
  bool take() {
    std::string part;
    switch (state_) {
      case State::Status:
        if (!connection_.line(&status_)) return false;
        state_ = State::Head;
        return true;
      case State::Head:
        return connection_.line(&part) && (take_field(std::move(part)), true);
      case State::Size:
        if (!connection_.line(&part)) return false;
        bytes_ = 0;
        std::from_chars(part.data(), part.data() + part.size(), bytes_, 16);
        state_ = bytes_ ? State::Piece : State::Ended;
        return true;
      case State::Piece:
        if (!connection_.bytes(bytes_, &part)) return false;
        if (status_.find(" 200") == std::string::npos) fail(status_ + ": " + part);
        answer_.take(part);
        state_ = State::AfterPiece;
        return true;
      case State::AfterPiece:
        if (!connection_.line(&part)) return false;
        state_ = State::Size;
        return true;
      case State::Ended:
        break;
    }
    return false;
  }
  void take_field(std::string line) {
    std::ranges::transform(line, line.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    if (line.starts_with("transfer-encoding:")) chunked_ = line.find("chunked") != std::string::npos;
    if (line.starts_with("content-length:")) bytes_ = std::stoul(line.substr(15));
    if (!line.empty()) return;
    if (!chunked_ && status_.find(" 200") != std::string::npos) fail("the answer does not stream");
    state_ = chunked_ ? State::Size : State::Piece;
  }

  const std::string text_;
  Connection connection_;
  const Clock::time_point begun_;
  Clock::time_point heard_ = begun_;
  Seen seen_;
  Answer answer_;
  State state_ = State::Status;
  std::string status_;
  bool chunked_ = false;
  size_t bytes_ = 0;  // of the piece that comes
};

// What all threads share.
struct Run {
  explicit Run(const Options& options) : o(options) {}
  const Options& o;
  std::mutex mutex;
  std::vector<Seen> all;
  std::vector<std::string> errors;
  std::atomic<uint32_t> next{0};
};

// Keeps some requests under way. One thread reads all of its answers, so that it costs the server's machine
// little beside it.
class Client {
 public:
  explicit Client(Run& run) : run_(run), poll_(epoll_create1(0)) {}
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() { close(poll_); }

  void go(uint32_t most) {
    while (under_way_.size() < most && begin()) continue;
    std::vector<epoll_event> events(std::max(most, 1u));
    while (!under_way_.empty()) {
      const int count = epoll_wait(poll_, events.data(), int(events.size()), 1000);
      for (int i = 0; i < count; ++i) advance(static_cast<Request*>(events[size_t(i)].data.ptr));
      give_up_silent();
    }
  }

 private:
  bool begin() {
    for (uint32_t number; (number = run_.next++) < run_.o.requests;) {
      try {
        auto request = std::make_unique<Request>(run_.o, number);
        epoll_event event = {};
        event.events = EPOLLIN;
        event.data.ptr = request.get();
        if (epoll_ctl(poll_, EPOLL_CTL_ADD, request->fd(), &event) != 0) fail("cannot watch a socket");
        under_way_.push_back(std::move(request));
        return true;
      } catch (const std::exception& error) {
        note(error.what());
      }
    }
    return false;
  }
  void advance(Request* request) {
    try {
      if (!request->advance()) return;
      const std::lock_guard<std::mutex> lock(run_.mutex);
      run_.all.push_back(std::move(request->seen()));
    } catch (const std::exception& error) {
      note(error.what());
    }
    end(request);
  }
  void end(const Request* request) {
    std::erase_if(under_way_, [&](const auto& each) { return each.get() == request; });
    begin();
  }
  void give_up_silent() {
    for (size_t i = under_way_.size(); i-- > 0;) {
      Request* request = under_way_[i].get();
      if (since(request->heard()) < kSilence) continue;
      note("nothing has come for " + std::to_string(int(kSilence)) + " seconds");
      end(request);
    }
  }
  void note(const char* error) {
    const std::lock_guard<std::mutex> lock(run_.mutex);
    run_.errors.emplace_back(error);
  }
  void note(const std::string& error) { note(error.c_str()); }

  Run& run_;
  const int poll_;
  std::vector<std::unique_ptr<Request>> under_way_;
};

struct Row {
  const char* name;
  double value;
};

double percentile(std::vector<double> of, double part) {
  if (of.empty()) return 0;
  std::ranges::sort(of);
  const double at = part * double(of.size() - 1);
  const size_t below = size_t(at);
  const double above = of[std::min(below + 1, of.size() - 1)];
  return of[below] + (at - std::floor(at)) * (above - of[below]);
}

double mean(const std::vector<double>& of) {
  return of.empty() ? 0 : std::accumulate(of.begin(), of.end(), 0.0) / double(of.size());
}

std::vector<Row> summary(const std::vector<Seen>& all, size_t failed, double seconds) {
  double input = 0, output = 0;
  std::vector<double> first, token, gap;
  for (const Seen& seen : all) {
    input += seen.prompt_tokens;
    output += seen.output_tokens;
    first.push_back(1e3 * seen.first);
    if (seen.output_tokens > 1) token.push_back(1e3 * (seen.end - seen.first) / (seen.output_tokens - 1));
    for (const double each : seen.gaps) gap.push_back(1e3 * each);
  }
  std::vector<Row> rows = {{"Successful requests", double(all.size())},
                           {"Failed requests", double(failed)},
                           {"Benchmark duration (s)", seconds},
                           {"Total input tokens", input},
                           {"Total generated tokens", output},
                           {"Request throughput (req/s)", double(all.size()) / seconds},
                           {"Output token throughput (tok/s)", output / seconds},
                           {"Total token throughput (tok/s)", (input + output) / seconds}};
  const auto add = [&](const char* average, const char* median, const char* late,
                       const std::vector<double>& of) {
    rows.push_back({average, mean(of)});
    rows.push_back({median, percentile(of, 0.5)});
    rows.push_back({late, percentile(of, 0.99)});
  };
  add("Mean TTFT (ms)", "Median TTFT (ms)", "P99 TTFT (ms)", first);
  add("Mean TPOT (ms)", "Median TPOT (ms)", "P99 TPOT (ms)", token);
  add("Mean ITL (ms)", "Median ITL (ms)", "P99 ITL (ms)", gap);
  return rows;
}

int run(const Options& o) {
  Run run(o);
  const Clock::time_point begun = Clock::now();
  {
    std::vector<std::jthread> threads;
    const uint32_t count = std::min(o.threads, o.concurrency);
    for (uint32_t i = 0; i < count; ++i)
      threads.emplace_back([&run, most = o.concurrency * (i + 1) / count - o.concurrency * i / count] {
        Client(run).go(most);
      });
  }
  const std::vector<Row> rows = summary(run.all, run.errors.size(), since(begun));
  if (o.as_json) {
    json object;
    for (const Row& row : rows) object[row.name] = row.value;
    std::printf("%s\n", object.dump().c_str());
  } else {
    for (const Row& row : rows) std::printf("%-34s %12.2f\n", row.name, row.value);
  }
  if (!run.errors.empty()) std::fprintf(stderr, "greta-bench-serve: %s\n", run.errors[0].c_str());
  return run.errors.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("send completions to a server and measure what a client sees");
  app.add_option("--host", o.host, "the server's host")->capture_default_str();
  app.add_option("--port", o.port, "its port")->capture_default_str();
  app.add_option("--socket", o.socket, "a unix socket in place of host and port");
  app.add_option("--api-key", o.key, "sent as a bearer token");
  app.add_option("--model", o.model, "the name that requests give")->capture_default_str();
  app.add_option("--num-prompts", o.requests, "requests in all")->capture_default_str();
  app.add_option("--max-concurrency", o.concurrency, "requests at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--random-input-len", o.prompt_tokens, "tokens of each prompt")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--random-prefix-len", o.shared_tokens, "of these, the first ones that all prompts share")
      ->capture_default_str();
  app.add_option("--random-output-len", o.output_tokens, "tokens of each answer")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--vocab", o.vocab, "tokens of prompts are drawn from 300 up to this")
      ->check(CLI::Range(301, 1 << 24))
      ->capture_default_str();
  app.add_option("--seed", o.seed, "of the prompts")->capture_default_str();
  app.add_option("--threads", o.threads, "that read answers")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_flag("--json", o.as_json, "print one JSON object");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "greta-bench-serve: %s\n", error.what());
    return 1;
  }
}
