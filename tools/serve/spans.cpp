#include "spans.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace greta::serve {
namespace {

constexpr std::chrono::seconds kGather{1};
constexpr size_t kMostWaiting = 4096, kMostTogether = 512;
constexpr time_t kPatienceSeconds = 5;  // for each step of talking to the collector

std::string hexadecimal(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

// An attribute; whole numbers are texts in OTLP's JSON.
Json attribute(const char* name, const std::string& value) {
  return {{"key", name}, {"value", {{"stringValue", value}}}};
}
Json attribute(const char* name, uint64_t value) {
  return {{"key", name}, {"value", {{"intValue", std::to_string(value)}}}};
}

Json span(const std::string& name, const std::string& trace, const std::string& id, const std::string& parent,
          uint64_t begin, uint64_t end) {
  Json json = {{"traceId", trace},
               {"spanId", id},
               {"name", name},
               {"kind", parent.empty() ? 2 : 1},
               {"startTimeUnixNano", std::to_string(begin)},
               {"endTimeUnixNano", std::to_string(end)}};
  if (!parent.empty()) json["parentSpanId"] = parent;
  return json;
}

struct Socket {
  int fd = -1;
  ~Socket() {
    if (fd >= 0) ::close(fd);
  }
};

bool connect_to(const std::string& host, const std::string& port, Socket* to) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found)) return false;
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> all(found, freeaddrinfo);
  for (const addrinfo* each = found; each; each = each->ai_next) {
    Socket tried{::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol)};
    const timeval limit{kPatienceSeconds, 0};
    setsockopt(tried.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    setsockopt(tried.fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    if (tried.fd < 0 || ::connect(tried.fd, each->ai_addr, each->ai_addrlen)) continue;
    std::swap(to->fd, tried.fd);
    return true;
  }
  return false;
}

}  // namespace

Trace trace_of(const std::string& header) {
  constexpr size_t kWhole = 55, kTrace = 3, kParent = 36, kFlags = 53;
  const auto is_hexadecimal = [&](size_t at, size_t count) {
    const std::string part = header.substr(at, count);
    return part.find_first_not_of("0123456789abcdef") == part.npos;
  };
  const auto is_zero = [&](size_t at, size_t count) {
    return header.substr(at, count).find_first_not_of('0') == std::string::npos;
  };
  const bool fits = header.size() >= kWhole && header[2] == '-' && header[kParent - 1] == '-' &&
                    header[kFlags - 1] == '-' && is_hexadecimal(0, 2) && is_hexadecimal(kTrace, 32) &&
                    is_hexadecimal(kParent, 16) && is_hexadecimal(kFlags, 2) &&
                    header.compare(0, 2, "ff") != 0;
  if (!fits || is_zero(kTrace, 32) || is_zero(kParent, 16)) return {};
  return {header.substr(kTrace, 32), header.substr(kParent, 16),
          (std::stoi(header.substr(kFlags, 2), nullptr, 16) & 1) == 1};
}

Spans::Spans(const std::string& url, std::function<void(const std::string&)> say) : say_(std::move(say)) {
  const std::string scheme = "http://";
  const size_t slash = std::min(url.find('/', scheme.size()), url.size());
  const std::string place = url.starts_with(scheme) ? url.substr(scheme.size(), slash - scheme.size()) : "";
  const size_t bracket = place.starts_with('[') ? place.find(']') : 0;
  const size_t colon = std::min(place.find(':', std::min(bracket, place.size())), place.size());
  host_ = place.starts_with('[') ? place.substr(1, std::max<size_t>(colon, 2) - 2) : place.substr(0, colon);
  port_ = colon < place.size() ? place.substr(colon + 1) : "4318";
  path_ = url.substr(slash);
  while (path_.ends_with('/')) path_.pop_back();
  if (!path_.ends_with("/v1/traces")) path_ += "/v1/traces";
  if (host_.empty() || url.find_first_of(" \t\r\n") != url.npos)
    throw std::runtime_error("--otlp-endpoint takes http://HOST:PORT, not \"" + url + "\"");
  thread_ = std::thread([this] { run(); });
}

Spans::~Spans() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  woken_.notify_all();
  thread_.join();
}

void Spans::add(const std::string& model, const Ended& ended) {
  if (!ended.trace.sampled) return;
  const greta_request_result& result = ended.result;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto end = static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now).count());
  const uint64_t begin = end - ended.whole_ns;
  const std::string trace = !ended.trace.trace.empty()
                                ? ended.trace.trace
                                : hexadecimal(random_number() | 1) + hexadecimal(random_number());
  const std::string id = hexadecimal(random_number() | 1);
  Json whole = span("request", trace, id, ended.trace.parent, begin, end);
  whole["kind"] = 2;  // of a server
  whole["attributes"] = {
      attribute("gen_ai.request.model", model), attribute("gen_ai.usage.input_tokens", result.prompt_tokens),
      attribute("gen_ai.usage.output_tokens", result.generated_tokens),
      attribute("greta.cached_tokens", result.cached_tokens), attribute("greta.request_id", ended.id)};
  if (ended.status != GRETA_OK) whole["status"] = {{"code", 2}};
  Json spans = Json::array({std::move(whole)});
  uint64_t at = begin;
  const std::pair<const char*, uint64_t> parts[] = {
      {"queue", result.queued_ns}, {"prompt", result.prompt_ns}, {"answer", result.generate_ns}};
  for (const auto& [name, ns] : parts) {
    const uint64_t until = std::min(at + ns, end);
    spans.push_back(span(name, trace, hexadecimal(random_number() | 1), id, at, until));
    at = until;
  }
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.size() >= kMostWaiting)
      ++lost_;
    else
      waiting_.push_back(std::move(spans));
  }
  woken_.notify_all();
}

void Spans::run() {
  bool reached = true;
  for (;;) {
    Json spans = Json::array();
    bool last = false;
    {
      std::unique_lock lock(mutex_);
      woken_.wait(lock, [this] { return closing_ || !waiting_.empty(); });
      woken_.wait_for(lock, kGather, [this] { return closing_ || waiting_.size() >= kMostTogether; });
      for (size_t i = 0; i < kMostTogether && !waiting_.empty(); ++i) {
        for (Json& each : waiting_.front()) spans.push_back(std::move(each));
        waiting_.pop_front();
      }
      last = closing_ && waiting_.empty();
    }
    if (!spans.empty()) {
      const size_t requests = spans.size() / 4;
      const Json scope = {{"scope", {{"name", "greta"}}}, {"spans", std::move(spans)}};
      const Json resource = {{"attributes", Json::array({attribute("service.name", std::string("greta"))})}};
      const Json body = {
          {"resourceSpans", Json::array({{{"resource", resource}, {"scopeSpans", Json::array({scope})}}})}};
      std::string why;
      const bool taken = send(dump(body), &why);
      if (!taken) lost_ += requests;
      if (!taken && reached && say_) say_("spans are lost: the collector " + host_ + ":" + port_ + " " + why);
      if (taken && !reached && say_)
        say_("the collector takes spans again; requests without: " + std::to_string(lost_));
      reached = taken;
      if (!taken && closing_) return;
    }
    if (last) return;
  }
}

bool Spans::send(const std::string& body, std::string* why) const {
  Socket to;
  *why = "cannot be reached";
  if (!connect_to(host_, port_, &to)) return false;
  const std::string host = host_.find(':') == host_.npos ? host_ : "[" + host_ + "]";
  const std::string text = "POST " + path_ + " HTTP/1.1\r\nHost: " + host + ":" + port_ +
                           "\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: " +
                           std::to_string(body.size()) + "\r\n\r\n" + body;
  *why = "does not answer";
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(to.fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  std::string answer;
  char piece[512];
  while (answer.size() < 12) {
    const ssize_t count = ::recv(to.fd, piece, sizeof piece, 0);
    if (count <= 0) return false;
    answer.append(piece, static_cast<size_t>(count));
  }
  const std::string status = answer.substr(9, 3);
  *why = "answers " + status;
  return answer.starts_with("HTTP/1.") && status[0] == '2';
}

}  // namespace greta::serve
