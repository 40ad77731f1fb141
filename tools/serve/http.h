// HTTP/1.1 for the server: what a client asks, the way back to it, and the listener. Only connection.cpp and
// listener.cpp include Boost, since each file that does compiles for ten seconds.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace greta::serve {

using Headers = std::vector<std::pair<std::string, std::string>>;

struct Call {
  std::string method, path, query;  // the path as sent, without what stands behind a '?'
  Headers headers;                  // names in lower case
  std::string body;
  bool local = false;  // it came over a unix socket

  // "" if there is none.
  const std::string& header(std::string_view name) const;
};

struct Response {
  int status = 200;
  std::string type = "application/json; charset=utf-8";
  std::string body;
  Headers headers;
};

// What wants to know of a client.
class Watcher {
 public:
  virtual ~Watcher() = default;
  virtual void gone() = 0;     // The client has left. Called once, on the network's thread.
  virtual void drained() = 0;  // It has read on, after Reply::full() was true.
};

// The way back to one client for one call. Any thread may use it; what it writes after the client has left
// goes nowhere. Either send() answers, or begin(), write() and end() do.
class Reply {
 public:
  virtual ~Reply() = default;
  virtual void always(Headers headers) = 0;  // of whatever answers. On the network's thread.
  virtual void send(Response response) = 0;
  virtual void begin(Response head) = 0;  // without a body
  virtual void write(std::string bytes) = 0;
  virtual void end() = 0;
  virtual bool full() const = 0;  // The client reads too slowly: wait for drained().
  virtual void watch(std::shared_ptr<Watcher> watcher) = 0;
  // Keeps `what` until just before the last bytes of the answer are sent, or until it holds something else:
  // a client that has its answer finds the place free that its call took.
  virtual void hold(std::shared_ptr<void> what) = 0;
};

// What the listener asks of the server, on the network's thread.
class Handler {
 public:
  virtual ~Handler() = default;
  // Looks at a head before its body is read. True: `refusal` answers it, and the connection is closed.
  virtual bool refuses(const Call& head, Response* refusal) = 0;
  virtual void handle(Call call, std::shared_ptr<Reply> reply) = 0;
  virtual Response malformed(int status, const std::string& words, const std::string& path) = 0;
  virtual void second() = 0;                   // Called once a second while there are connections.
  virtual void asked_to_stop(int signal) = 0;  // SIGINT or SIGTERM
};

struct ListenOptions {
  std::string host;  // an address, a name, or the path of a unix socket if it ends with ".sock"
  uint16_t port = 8080;
  std::vector<int> sockets;              // that listen already, which are taken in place of `host`
  std::string tls_key, tls_certificate;  // files in PEM's form; "": there is no TLS
  uint32_t ping_s = 15;                  // a comment in a stream after so long without anything
  uint32_t timeout_s = 600;              // a client that takes nothing for so long is left
  uint64_t body_bytes = 32 << 20;
  uint32_t head_bytes = 64 << 10;
  uint32_t connections = 4096;
};

// Binds at once and answers in run(). Throws std::runtime_error if the address cannot be had.
class Listener {
 public:
  Listener(const ListenOptions& options, Handler* handler);
  ~Listener();
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  void run();   // until stop()
  void stop();  // from any thread
  void post(std::function<void()> work);
  uint16_t port() const;  // the one that was chosen where 0 was asked for; 0: it has none
  bool loopback() const;  // nobody but this machine reaches it
  size_t busy() const;    // Connections with an answer under way. On the network's thread.

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace greta::serve
