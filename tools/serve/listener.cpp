#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <csignal>
#include <stdexcept>
#include <utility>

#include "connection.h"
#include "tls.h"

namespace greta::serve {
namespace asio = boost::asio;
namespace {

using Stream = asio::generic::stream_protocol;
using Acceptor = asio::basic_socket_acceptor<Stream>;
using Tcp = asio::ip::tcp;
using Unix = asio::local::stream_protocol;

[[noreturn]] void cannot_listen(const std::string& where, const boost::system::error_code& error) {
  throw std::runtime_error("cannot listen on " + where + ": " + error.message());
}

bool is_unix(const std::string& host) { return host.size() > 5 && host.ends_with(".sock"); }

Tcp::endpoint tcp_endpoint(const Stream::endpoint& from) {
  Tcp::endpoint to;
  to.resize(from.size());
  std::copy_n(reinterpret_cast<const char*>(from.data()), from.size(), reinterpret_cast<char*>(to.data()));
  return to;
}

// A socket that nobody listens on any more is removed.
void remove_stale(asio::io_context& io, const std::string& path) {
  struct stat found{};
  if (lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return;
  Unix::socket probe(io);
  boost::system::error_code error;
  probe.connect(Unix::endpoint(path), error);
  if (error == asio::error::connection_refused) unlink(path.c_str());
}

}  // namespace

struct Listener::Parts {
  Network network;
  std::vector<Acceptor> acceptors;
  asio::signal_set signals{network.io};
  asio::steady_timer clock{network.io}, pause{network.io};
  std::string unix_path;
  std::unique_ptr<Tls> tls;  // null: there is none
  bool loopback = true, ticking = false, stopping = false;
  uint16_t port = 0;

  void listen_unix(const std::string& path);
  void listen_tcp(const std::string& host, uint16_t wanted);
  void listen_on(int socket);
  Acceptor& open(const Stream::endpoint& endpoint, const std::string& where, bool v6);
  void accept(Acceptor& acceptor);
  void tick();
  void await_signal();
};

Acceptor& Listener::Parts::open(const Stream::endpoint& endpoint, const std::string& where, bool v6) {
  Acceptor acceptor(network.io);
  boost::system::error_code error;
  const auto step = [&](auto act) {
    if (!error) act();
  };
  acceptor.open(endpoint.protocol(), error);
  if (unix_path.empty()) step([&] { acceptor.set_option(asio::socket_base::reuse_address(true), error); });
  if (v6) step([&] { acceptor.set_option(asio::ip::v6_only(true), error); });
  step([&] { acceptor.bind(endpoint, error); });
  step([&] { acceptor.listen(asio::socket_base::max_listen_connections, error); });
  if (error) cannot_listen(where, error);
  acceptors.push_back(std::move(acceptor));
  return acceptors.back();
}

void Listener::Parts::listen_unix(const std::string& path) {
  remove_stale(network.io, path);
  unix_path = path;
  const mode_t before = umask(0177);  // nobody but this user may connect
  try {
    open(Unix::endpoint(path), path, false);
  } catch (...) {
    umask(before);
    unix_path.clear();  // it is another's
    throw;
  }
  umask(before);
}

void Listener::Parts::listen_tcp(const std::string& host, uint16_t wanted) {
  boost::system::error_code error;
  Tcp::resolver resolver(network.io);
  const auto found = resolver.resolve(host, std::to_string(wanted),
                                      Tcp::resolver::passive | Tcp::resolver::numeric_service, error);
  const std::string where = host + ":" + std::to_string(wanted);
  if (error) cannot_listen(where, error);
  for (const auto& entry : found) {
    Tcp::endpoint endpoint = entry.endpoint();
    if (port != 0) endpoint.port(port);  // the one that was chosen for the first address
    const Acceptor& acceptor = open(endpoint, where, endpoint.address().is_v6());
    loopback = loopback && endpoint.address().is_loopback();
    port = tcp_endpoint(acceptor.local_endpoint()).port();
  }
}

// Takes a socket that another program has bound, and on which it or systemd listens.
void Listener::Parts::listen_on(int socket) {
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  int listens = 0;
  socklen_t flag_size = sizeof listens;
  if (getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0 ||
      getsockopt(socket, SOL_SOCKET, SO_ACCEPTCONN, &listens, &flag_size) != 0 || listens == 0)
    throw std::runtime_error("descriptor " + std::to_string(socket) +
                             " was passed on, and is no socket that listens");
  fcntl(socket, F_SETFD, FD_CLOEXEC);
  acceptors.emplace_back(network.io, Stream(bound.ss_family, 0), socket);
  if (bound.ss_family == AF_UNIX) return;
  const Tcp::endpoint endpoint = tcp_endpoint(acceptors.back().local_endpoint());
  loopback = loopback && endpoint.address().is_loopback();
  port = endpoint.port();
}

void Listener::Parts::accept(Acceptor& acceptor) {
  acceptor.async_accept([this, &acceptor](boost::system::error_code error, Stream::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (error) {  // No descriptor is free, for one: try again soon.
      pause.expires_after(std::chrono::milliseconds(100));
      pause.async_wait([this, &acceptor](boost::system::error_code stopped) {
        if (!stopped) accept(acceptor);
      });
      return;
    }
    if (network.connections.size() < network.options.connections) {
      boost::system::error_code ignored;
      socket.set_option(Tcp::no_delay(true), ignored);
      const bool local = acceptor.local_endpoint(ignored).protocol().family() == AF_UNIX;
      if (tls) socket = tls->wrap(network.io, std::move(socket));
      std::make_shared<Connection>(&network, std::move(socket), local)->start();
      tick();
    }
    accept(acceptor);
  });
}

// Runs while there are connections or the server stops, so that an idle one costs nothing.
void Listener::Parts::tick() {
  if (ticking) return;
  ticking = true;
  clock.expires_after(std::chrono::seconds(1));
  clock.async_wait([this](boost::system::error_code error) {
    ticking = false;
    if (error) return;
    const auto now = Connection::Clock::now();
    std::vector<std::shared_ptr<Connection>> all;
    for (Connection* connection : network.connections)
      if (auto alive = connection->weak_from_this().lock()) all.push_back(std::move(alive));
    for (const auto& connection : all) connection->sweep(now);
    network.handler->second();
    if (stopping || !network.connections.empty()) tick();
  });
}

void Listener::Parts::await_signal() {
  signals.async_wait([this](boost::system::error_code error, int signal) {
    if (error) return;
    stopping = true;
    network.handler->asked_to_stop(signal);
    tick();
    await_signal();
  });
}

Listener::Listener(const ListenOptions& options, Handler* handler) : parts_(std::make_unique<Parts>()) {
  parts_->network.options = options;
  parts_->network.handler = handler;
  if (!options.tls_key.empty()) parts_->tls = std::make_unique<Tls>(options.tls_key, options.tls_certificate);
  parts_->acceptors.reserve(options.sockets.size());
  for (const int socket : options.sockets) parts_->listen_on(socket);
  if (!options.sockets.empty()) return;
  if (is_unix(options.host))
    parts_->listen_unix(options.host);
  else
    parts_->listen_tcp(options.host, options.port);
}

Listener::~Listener() {
  for (Acceptor& acceptor : parts_->acceptors) {
    boost::system::error_code ignored;
    acceptor.close(ignored);
  }
  if (!parts_->unix_path.empty()) unlink(parts_->unix_path.c_str());
}

void Listener::run() {
  boost::system::error_code ignored;
  parts_->signals.add(SIGINT, ignored);
  parts_->signals.add(SIGTERM, ignored);
  parts_->await_signal();
  for (Acceptor& acceptor : parts_->acceptors) parts_->accept(acceptor);
  for (;;) {
    try {
      parts_->network.io.run();
      return;
    } catch (const std::exception&) {  // Memory for one connection ran out: the others go on.
    }
  }
}

void Listener::stop() { parts_->network.io.stop(); }

void Listener::post(std::function<void()> work) { asio::post(parts_->network.io, std::move(work)); }

uint16_t Listener::port() const { return parts_->port; }

bool Listener::loopback() const { return parts_->loopback; }

size_t Listener::busy() const {
  size_t count = parts_->tls ? parts_->tls->busy() : 0;
  for (const Connection* connection : parts_->network.connections) count += connection->busy() ? 1 : 0;
  return count;
}

}  // namespace greta::serve
