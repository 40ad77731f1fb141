// One connection of the listener: reads a call, hands it on, and writes what comes back.
#pragma once
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <utility>  // Asio 1.74 needs it with GCC 12 and does not include it

#include "http.h"

namespace greta::serve {

class Connection;

// What connections share. It is used on the network's thread alone.
struct Network {
  ListenOptions options;
  Handler* handler = nullptr;
  std::set<Connection*> connections;
  boost::asio::io_context io{1};  // last, since its end ends the connections
};

// The way back for one call; a connection has one after the other.
class Exchange : public Reply, public std::enable_shared_from_this<Exchange> {
 public:
  Exchange(Network* network, std::shared_ptr<Connection> connection);
  void always(Headers headers) override { headers_ = std::move(headers); }
  const Headers& headers() const { return headers_; }
  void send(Response response) override;
  void begin(Response head) override;
  void write(std::string bytes) override;
  void end() override;
  bool full() const override;
  void watch(std::shared_ptr<Watcher> watcher) override;
  void hold(std::shared_ptr<void> what) override;
  // On the network's thread:
  void leave();
  void sent(size_t bytes);

 private:
  template <class Work>
  void post(Work work);

  Network* network_;
  std::weak_ptr<Connection> connection_;
  Headers headers_;
  std::atomic<size_t> unsent_{0};
  std::atomic<bool> gone_{false}, was_full_{false};
  std::mutex mutex_;
  std::shared_ptr<Watcher> watcher_;
  std::shared_ptr<void> held_;
};

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  using Error = boost::system::error_code;
  using Clock = std::chrono::steady_clock;

  Connection(Network* network, Socket socket, bool local);
  ~Connection();
  void start() { watch(); }
  void sweep(Clock::time_point now);  // once a second: deadlines and comments in streams
  void close();
  bool busy() const { return state_ == State::Busy; }

  // What an exchange does, on the network's thread. Exchanges that are over are not heard.
  void send(const Exchange* from, Response response);
  void begin(const Exchange* from, const Response& head);
  void write(const Exchange* from, const std::string& bytes);
  void end(const Exchange* from);

 private:
  enum class State { Idle, Reading, Busy, Lingering, Closed };

  void watch();
  void on_readable(Error error);
  void read_head();
  void on_head(Error error);
  void read_body();
  void on_body(Error error);
  void malformed(Error error);
  void refuse(const Response& response);
  void write_next();
  void write_rest(size_t begin);
  void note_sent(size_t bytes);
  void finish();
  void linger();
  void set_deadline(uint64_t seconds) { deadline_ = Clock::now() + std::chrono::seconds(seconds); }
  std::string head_text(const Response& response, bool whole) const;

  Network* network_;
  Socket socket_;
  const bool local_;
  State state_ = State::Idle;
  bool watching_ = false, writing_ = false, streaming_ = false, pings_ = false, chunked_ = false,
       ended_ = false, keep_ = true, head_only_ = false, body_unread_ = false;
  Clock::time_point deadline_, last_write_;
  boost::beast::flat_buffer buffer_;
  std::optional<boost::beast::http::request_parser<boost::beast::http::string_body>> parser_;
  Call call_;
  std::shared_ptr<Exchange> exchange_;
  std::string out_, writing_out_;  // what waits, and what is being written
};

}  // namespace greta::serve
