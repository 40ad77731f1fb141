// greta-bench-serve: sends completions to a server over HTTP and measures what a client sees. The figures
// have the names of `vllm bench serve`. It speaks OpenAI's /v1/completions, so other servers are measured
// alike.
#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
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

struct Options {
  std::string host = "127.0.0.1", port = "8080", socket, model = "any", key;
  uint32_t requests = 64, concurrency = 8, prompt_tokens = 128, shared_tokens = 0, output_tokens = 128;
  uint32_t vocab = 32000, seed = 0;
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

// A connection, read by lines and by counts of bytes.
class Connection {
 public:
  explicit Connection(const Options& o) : fd_(o.socket.empty() ? over_tcp(o) : over_file(o.socket)) {
    const timeval limit = {600, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() { close(fd_); }

  void send(const std::string& text) {
    for (size_t at = 0; at < text.size();) {
      const ssize_t sent = ::send(fd_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (sent <= 0) fail(std::string("cannot send: ") + strerror(errno));
      at += size_t(sent);
    }
  }
  // A line without its end, "\r\n" or "\n".
  std::string line() {
    for (;;) {
      const size_t end = held_.find('\n', at_);
      if (end != std::string::npos) {
        std::string text = held_.substr(at_, end - at_);
        at_ = end + 1;
        if (!text.empty() && text.back() == '\r') text.pop_back();
        return text;
      }
      more();
    }
  }
  std::string bytes(size_t count) {
    while (held_.size() - at_ < count) more();
    std::string text = held_.substr(at_, count);
    at_ += count;
    return text;
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
  void more() {
    held_.erase(0, at_);
    at_ = 0;
    char piece[16384];
    ssize_t got = 0;
    do {
      got = recv(fd_, piece, sizeof piece, 0);
    } while (got < 0 && errno == EINTR);  // as after the process was stopped for a while
    if (got <= 0)
      fail(got ? std::string("cannot read: ") + strerror(errno) : "the server closed the connection");
    held_.append(piece, size_t(got));
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

Seen run_request(const Options& o, uint32_t number) {
  const std::string text = request_text(o, number);
  Connection connection(o);
  const Clock::time_point begun = Clock::now();
  connection.send(text);
  const std::string status = connection.line();
  bool chunked = false;
  size_t length = 0;
  for (std::string line = connection.line(); !line.empty(); line = connection.line()) {
    std::ranges::transform(line, line.begin(), [](unsigned char c) { return char(std::tolower(c)); });
    if (line.starts_with("transfer-encoding:")) chunked = line.find("chunked") != std::string::npos;
    if (line.starts_with("content-length:")) length = std::stoul(line.substr(15));
  }
  if (status.find(" 200") == std::string::npos)
    fail(status + ": " + (chunked ? connection.line() + connection.line() : connection.bytes(length)));
  if (!chunked) fail("the answer does not stream");
  Seen seen;
  Answer answer(begun, &seen);
  for (;;) {
    const std::string count = connection.line();
    size_t bytes = 0;
    std::from_chars(count.data(), count.data() + count.size(), bytes, 16);
    if (bytes == 0) break;
    answer.take(connection.bytes(bytes));
    connection.line();
  }
  seen.end = since(begun);
  if (seen.first == 0) fail("an answer without a text");
  if (seen.output_tokens == 0) seen.output_tokens = uint32_t(seen.gaps.size() + 1);
  return seen;
}

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
  std::vector<Seen> all;
  std::vector<std::string> errors;
  std::mutex mutex;
  std::atomic<uint32_t> next{0};
  const Clock::time_point begun = Clock::now();
  {
    std::vector<std::jthread> clients;
    for (uint32_t i = 0; i < o.concurrency; ++i)
      clients.emplace_back([&] {
        for (uint32_t number; (number = next++) < o.requests;) {
          try {
            Seen seen = run_request(o, number);
            const std::lock_guard<std::mutex> lock(mutex);
            all.push_back(std::move(seen));
          } catch (const std::exception& error) {
            const std::lock_guard<std::mutex> lock(mutex);
            errors.emplace_back(error.what());
          }
        }
      });
  }
  const std::vector<Row> rows = summary(all, errors.size(), since(begun));
  if (o.as_json) {
    json object;
    for (const Row& row : rows) object[row.name] = row.value;
    std::printf("%s\n", object.dump().c_str());
  } else {
    for (const Row& row : rows) std::printf("%-34s %12.2f\n", row.name, row.value);
  }
  if (!errors.empty()) std::fprintf(stderr, "greta-bench-serve: %s\n", errors[0].c_str());
  return errors.empty() ? 0 : 1;
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
  app.add_flag("--json", o.as_json, "print one JSON object");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "greta-bench-serve: %s\n", error.what());
    return 1;
  }
}
