#include "connection.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/read.hpp>
#include <cctype>
#include <charconv>

namespace greta::serve {
namespace http = boost::beast::http;
namespace asio = boost::asio;
namespace {

constexpr uint64_t kIdleSeconds = 75, kHeadSeconds = 10, kBodySeconds = 60, kLingerSeconds = 2;
constexpr uint64_t kSlowestBytes = 64 << 10;  // a body has a second more for each of these
constexpr size_t kFull = 256 << 10;           // unread bytes of a stream from which its answer pauses
constexpr size_t kPipelined = 64 << 10;       // what is read ahead of an answer

const char* reason_of(int status) {
  const auto known = http::int_to_status(static_cast<unsigned>(status));
  const boost::beast::string_view text = http::obsolete_reason(known);
  return text.data();
}

std::string lower(boost::beast::string_view text) {
  std::string out(text);
  for (char& letter : out) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return out;
}

struct Fault {
  http::error error;
  int status;
  const char* words;
};
constexpr Fault kFaults[] = {
    {http::error::header_limit, 431, "the head of the request is too long"},
    {http::error::body_limit, 413, "the body of the request is too long"},
    {http::error::buffer_overflow, 431, "the head of the request is too long"},
    {http::error::bad_content_length, 400, "Content-Length is wrong, or is there twice"},
    {http::error::bad_transfer_encoding, 400, "Transfer-Encoding is wrong"},
    {http::error::bad_version, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here"},
    {http::error::partial_message, 400, "the request is not whole"},
};

}  // namespace

const std::string& Call::header(std::string_view name) const {
  static const std::string none;
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return none;
}

// ---- exchanges ----

Exchange::Exchange(Network* network, std::shared_ptr<Connection> connection)
    : network_(network), connection_(connection) {}

template <class Work>
void Exchange::post(Work work) {
  asio::post(network_->io, [self = shared_from_this(), work = std::move(work)]() mutable {
    if (const std::shared_ptr<Connection> connection = self->connection_.lock()) work(*connection);
  });
}

void Exchange::send(Response response) {
  hold(nullptr);
  post([this, response = std::move(response)](Connection& c) mutable { c.send(this, std::move(response)); });
}

void Exchange::begin(Response head) {
  post([this, head = std::move(head)](Connection& c) { c.begin(this, head); });
}

void Exchange::write(std::string bytes) {
  if (gone_ || bytes.empty()) return;
  if (unsent_.fetch_add(bytes.size()) + bytes.size() > kFull) was_full_ = true;
  post([this, bytes = std::move(bytes)](Connection& c) { c.write(this, bytes); });
}

void Exchange::end() {
  hold(nullptr);
  post([this](Connection& c) { c.end(this); });
}

bool Exchange::full() const { return unsent_ > kFull && !gone_; }

void Exchange::watch(std::shared_ptr<Watcher> watcher) {
  {
    const std::lock_guard lock(mutex_);
    if (!gone_) {
      watcher_ = std::move(watcher);
      return;
    }
  }
  if (watcher) watcher->gone();
}

void Exchange::hold(std::shared_ptr<void> what) {
  const std::lock_guard lock(mutex_);
  held_.swap(what);  // A parameter ends after the lock, and what was held may begin another call.
}

void Exchange::leave() {
  std::shared_ptr<Watcher> watcher;
  {
    const std::lock_guard lock(mutex_);
    gone_ = true;
    watcher = std::move(watcher_);
  }
  if (watcher) watcher->gone();
}

void Exchange::sent(size_t bytes) {
  const size_t before = unsent_, taken = std::min(bytes, before);  // heads and sizes of chunks count here
  const size_t rest = unsent_.fetch_sub(taken) - taken;
  if (rest > kFull / 2 || !was_full_.exchange(false)) return;
  std::shared_ptr<Watcher> watcher;
  {
    const std::lock_guard lock(mutex_);
    watcher = watcher_;
  }
  if (watcher) watcher->drained();
}

// ---- connections ----

Connection::Connection(Network* network, Socket socket, bool local)
    : network_(network), socket_(std::move(socket)), local_(local) {
  network_->connections.insert(this);
  Error ignored;
  socket_.non_blocking(true, ignored);
  set_deadline(kIdleSeconds);
}

Connection::~Connection() { network_->connections.erase(this); }

void Connection::close() {
  if (state_ == State::Closed) return;
  state_ = State::Closed;
  Error ignored;
  socket_.close(ignored);
  if (const std::shared_ptr<Exchange> exchange = std::move(exchange_)) exchange->leave();
}

void Connection::sweep(Clock::time_point now) {
  const bool waits_for_answer = state_ == State::Busy && !writing_;
  if (!waits_for_answer && now >= deadline_) {
    if (state_ != State::Reading || !parser_) return close();
    Response late = network_->handler->malformed(408, "the request came too slowly", call_.path);
    return refuse(late);
  }
  if (pings_ && !writing_ && now - last_write_ >= std::chrono::seconds(network_->options.ping_s) &&
      network_->options.ping_s > 0)
    write(exchange_.get(), ":\n\n");
}

// Waits until the client sends something or leaves, without a buffer.
void Connection::watch() {
  if (watching_ || state_ == State::Closed) return;
  watching_ = true;
  socket_.async_wait(Socket::wait_read,
                     [self = shared_from_this()](Error error) { self->on_readable(error); });
}

void Connection::on_readable(Error error) {
  watching_ = false;
  if (error || state_ == State::Closed) return close();
  if (state_ == State::Reading) return;
  if (state_ == State::Idle) return read_head();
  if (state_ == State::Lingering) {  // What comes now is dropped. A read of the request may use the buffer.
    char dropped[4096];
    socket_.read_some(asio::buffer(dropped), error);
    return error && error != asio::error::would_block ? close() : watch();
  }
  const size_t bytes = socket_.read_some(buffer_.prepare(4096), error);
  if (error == asio::error::would_block) return watch();
  if (error) return close();
  buffer_.commit(bytes);
  if (buffer_.size() < kPipelined) watch();
}

void Connection::read_head() {
  state_ = State::Reading;
  set_deadline(kHeadSeconds);
  call_ = Call{};
  parser_.emplace();
  parser_->header_limit(network_->options.head_bytes);
  parser_->body_limit(network_->options.body_bytes);
  http::async_read_header(socket_, buffer_, *parser_,
                          [self = shared_from_this()](Error error, size_t) { self->on_head(error); });
}

void Connection::on_head(Error error) {
  if (state_ != State::Reading) return;
  if (error) return malformed(error);
  auto& message = parser_->get();
  call_.local = local_;
  call_.method = std::string(message.method_string());
  const std::string target(message.target());
  const size_t question = std::min(target.find('?'), target.size());
  call_.path = target.substr(0, question);
  if (question < target.size()) call_.query = target.substr(question + 1);
  for (const auto& field : message)
    call_.headers.emplace_back(lower(field.name_string()), std::string(field.value()));
  keep_ = parser_->keep_alive();
  head_only_ = call_.method == "HEAD";
  chunked_ = message.version() >= 11;
  body_unread_ = !parser_->is_done();
  Response refusal;
  if (network_->handler->refuses(call_, &refusal)) return refuse(refusal);
  if (boost::beast::iequals(call_.header("expect"), "100-continue") && body_unread_) {
    out_ += "HTTP/1.1 100 Continue\r\n\r\n";
    write_next();
  }
  read_body();
}

void Connection::read_body() {
  const uint64_t length = parser_->content_length() ? *parser_->content_length() : 0;
  set_deadline(kBodySeconds + length / kSlowestBytes);
  http::async_read(socket_, buffer_, *parser_,
                   [self = shared_from_this()](Error error, size_t) { self->on_body(error); });
}

void Connection::on_body(Error error) {
  if (state_ != State::Reading) return;
  if (error) return malformed(error);
  body_unread_ = false;
  call_.body = std::move(parser_->get().body());
  parser_.reset();
  state_ = State::Busy;
  ended_ = false;
  exchange_ = std::make_shared<Exchange>(network_, shared_from_this());
  if (buffer_.size() < kPipelined) watch();
  network_->handler->handle(std::move(call_), exchange_);
}

void Connection::malformed(Error error) {
  if (error == http::error::end_of_stream || error.category() == asio::error::get_system_category() ||
      error.category() == asio::error::get_misc_category())
    return close();  // The client has left.
  int status = 400;
  std::string words = "the request is no HTTP: " + error.message();
  for (const Fault& fault : kFaults) {
    if (error != fault.error) continue;
    status = fault.status;
    words = fault.words;
  }
  body_unread_ = true;
  refuse(network_->handler->malformed(status, words, call_.path));
}

// Answers a request whose body nobody reads.
void Connection::refuse(const Response& response) {
  state_ = State::Busy;
  exchange_.reset();
  if (body_unread_) keep_ = false;
  out_ += head_text(response, true);
  if (!head_only_) out_ += response.body;
  ended_ = true;
  write_next();
}

std::string Connection::head_text(const Response& response, bool whole) const {
  std::string text = "HTTP/1.1 " + std::to_string(response.status) + " " + reason_of(response.status);
  if (!response.type.empty()) text += "\r\nContent-Type: " + response.type;
  static const Headers none;
  for (const Headers* headers : {&response.headers, exchange_ ? &exchange_->headers() : &none})
    for (const auto& [name, value] : *headers) text += "\r\n" + name + ": " + value;
  if (whole && response.status != 204) text += "\r\nContent-Length: " + std::to_string(response.body.size());
  if (!whole && chunked_) text += "\r\nTransfer-Encoding: chunked";
  text += keep_ ? "\r\nConnection: keep-alive" : "\r\nConnection: close";
  return text + "\r\n\r\n";
}

void Connection::send(const Exchange* from, Response response) {
  if (from != exchange_.get() || streaming_ || ended_) return;
  out_ += head_text(response, true);
  if (!head_only_) out_ += response.body;
  ended_ = true;
  write_next();
}

void Connection::begin(const Exchange* from, const Response& head) {
  if (from != exchange_.get() || streaming_ || ended_) return;
  streaming_ = true;
  pings_ = head.type == "text/event-stream";
  if (!chunked_) keep_ = false;
  out_ += head_text(head, false);
  write_next();
}

void Connection::write(const Exchange* from, const std::string& bytes) {
  if (from != exchange_.get() || !streaming_ || ended_ || head_only_ || bytes.empty()) return;
  if (chunked_) {
    char size[16];
    out_.append(size, std::to_chars(size, size + sizeof size, bytes.size(), 16).ptr) += "\r\n";
  }
  out_ += bytes;
  if (chunked_) out_ += "\r\n";
  write_next();
}

void Connection::end(const Exchange* from) {
  if (from != exchange_.get() || !streaming_ || ended_) return;
  if (chunked_ && !head_only_) out_ += "0\r\n\r\n";
  ended_ = true;
  write_next();
}

// Writes what there is, as far as the client takes it at once. The rest goes when there is room, and behind
// it what has gathered until then.
void Connection::write_next() {
  if (writing_ || state_ == State::Closed) return;
  if (!out_.empty()) {
    writing_out_.clear();
    writing_out_.swap(out_);
    last_write_ = Clock::now();
    if (state_ == State::Busy) set_deadline(network_->options.timeout_s);
    Error error;
    const size_t bytes = socket_.write_some(asio::buffer(writing_out_), error);
    if (error && error != asio::error::would_block) return close();
    note_sent(bytes);
    if (bytes < writing_out_.size()) return write_rest(bytes);
  }
  if (ended_ && state_ == State::Busy) finish();
}

void Connection::write_rest(size_t begin) {
  writing_ = true;
  asio::async_write(socket_, asio::buffer(writing_out_) + begin,
                    [self = shared_from_this()](Error error, size_t bytes) {
                      self->writing_ = false;
                      if (error) return self->close();
                      self->note_sent(bytes);
                      self->last_write_ = Clock::now();
                      self->write_next();
                    });
}

void Connection::note_sent(size_t bytes) {
  if (exchange_) exchange_->sent(bytes);
}

// The answer is written: on to the next request.
void Connection::finish() {
  exchange_.reset();
  streaming_ = pings_ = ended_ = false;
  call_ = Call{};
  // An idle connection keeps no memory.
  for (std::string* text : {&out_, &writing_out_}) std::string().swap(*text);
  if (!keep_) return linger();
  state_ = State::Idle;
  set_deadline(kIdleSeconds);
  if (buffer_.size() > 0) return read_head();
  buffer_ = {};
  watch();
}

// Closes so that the answer arrives also where the client still sends: what it sends is read for a while.
void Connection::linger() {
  state_ = State::Lingering;
  set_deadline(kLingerSeconds);
  Error error;
  socket_.shutdown(Socket::shutdown_send, error);
  if (error) return close();
  watch();
}

}  // namespace greta::serve
