#include "tls.h"

#include <stdexcept>
#include <utility>
#include <vector>

#if GRETA_SERVE_TLS
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#endif

namespace greta::serve {

#if GRETA_SERVE_TLS
namespace {

namespace asio = boost::asio;
using Socket = Tls::Socket;
using Error = boost::system::error_code;

constexpr size_t kPiece = 16 << 10;
constexpr std::chrono::seconds kHandshake{10};  // as long as the head of a call has

std::string ssl_text() {
  char text[256] = "unknown";
  if (const unsigned long code = ERR_get_error()) ERR_error_string_n(code, text, sizeof text);
  ERR_clear_error();
  return text;
}

// Bytes between a client and the plain side. Each direction has at most one piece under way, so that who
// reads slowly is written to slowly. The pending operations keep it alive.
class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(SSL* ssl, Socket client, Socket plain)
      : ssl_(ssl),
        from_client_(BIO_new(BIO_s_mem())),
        to_client_(BIO_new(BIO_s_mem())),
        client_(std::move(client)),
        plain_(std::move(plain)),
        limit_(client_.get_executor(), kHandshake) {
    SSL_set_bio(ssl_, from_client_, to_client_);  // which belong to it now
    SSL_set_accept_state(ssl_);
  }
  ~Link() { SSL_free(ssl_); }
  Link(const Link&) = delete;
  Link& operator=(const Link&) = delete;

  bool busy() const {
    Error ignored;
    return writing_ || (plain_.is_open() && plain_.available(ignored) > 0);
  }
  void start() {
    wait_for_client();
    wait_for_plain();
    limit_.async_wait([link = weak_from_this()](Error) {
      const std::shared_ptr<Link> self = link.lock();
      if (self && !SSL_is_init_finished(self->ssl_)) self->close();
    });
  }

 private:
  void close() {
    Error ignored;
    client_.close(ignored);
    plain_.close(ignored);
  }

  void wait_for_client() {
    client_.async_wait(Socket::wait_read, [self = shared_from_this()](Error error) {
      if (error) return self->close();
      self->read_client();
    });
  }

  void read_client() {
    char piece[kPiece];
    Error error;
    const size_t bytes = client_.read_some(asio::buffer(piece), error);
    if (error == asio::error::would_block) return wait_for_client();
    if (error) return close();
    BIO_write(from_client_, piece, static_cast<int>(bytes));
    to_plain_.clear();
    for (int got = 0; (got = SSL_read(ssl_, piece, sizeof piece)) > 0;)
      to_plain_.append(piece, static_cast<size_t>(got));
    const int state = SSL_get_error(ssl_, 0);
    const bool ended = (SSL_get_shutdown(ssl_) & SSL_RECEIVED_SHUTDOWN) != 0;
    const bool failed =
        !ended && state != SSL_ERROR_WANT_READ && state != SSL_ERROR_WANT_WRITE && ERR_peek_error() != 0;
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_)) limit_.cancel();
    flush();  // an answer of the handshake, or an alert
    if (failed) return fail();
    if (to_plain_.empty()) return ended ? end_plain() : wait_for_client();
    asio::async_write(plain_, asio::buffer(to_plain_),
                      [self = shared_from_this(), ended](Error wrong, size_t) {
                        if (wrong) return self->close();
                        ended ? self->end_plain() : self->wait_for_client();
                      });
  }

  void fail() {
    failed_ = true;
    if (!writing_) close();
  }

  void end_plain() {
    Error ignored;
    plain_.shutdown(Socket::shutdown_send, ignored);
  }

  void wait_for_plain() {
    plain_.async_wait(Socket::wait_read, [self = shared_from_this()](Error error) {
      if (error) return self->close();
      self->read_plain();
    });
  }

  void read_plain() {
    char piece[kPiece];
    Error error;
    const size_t bytes = plain_.read_some(asio::buffer(piece), error);
    if (error == asio::error::would_block) return wait_for_plain();
    if (error) {  // The connection has closed.
      SSL_shutdown(ssl_);
      closing_ = true;
      flush();
      if (!writing_) end_client();
      return;
    }
    // Before the handshake is over there is nothing that a connection would say but that the client is too
    // slow.
    if (!SSL_is_init_finished(ssl_) || SSL_write(ssl_, piece, static_cast<int>(bytes)) <= 0) return close();
    flush();
    if (!writing_)
      wait_for_plain();
    else
      reads_plain_ = true;
  }

  void flush() {
    if (writing_) return;
    const size_t bytes = BIO_ctrl_pending(to_client_);
    if (bytes == 0) return;
    to_send_.resize(bytes);
    BIO_read(to_client_, to_send_.data(), static_cast<int>(bytes));
    writing_ = true;
    asio::async_write(client_, asio::buffer(to_send_), [self = shared_from_this()](Error error, size_t) {
      self->writing_ = false;
      if (error || self->failed_) return self->close();
      self->flush();
      if (self->writing_) return;
      if (std::exchange(self->reads_plain_, false)) self->wait_for_plain();
      if (self->closing_) self->end_client();
    });
  }

  // The client has all that was written to it. What it still sends is read and dropped until it closes.
  void end_client() {
    Error ignored;
    client_.shutdown(Socket::shutdown_send, ignored);
    plain_.close(ignored);
  }

  SSL* ssl_;
  BIO *from_client_, *to_client_;
  Socket client_, plain_;
  asio::steady_timer limit_;  // of the handshake
  std::string to_plain_, to_send_;
  bool writing_ = false, reads_plain_ = false, closing_ = false, failed_ = false;
};

}  // namespace

struct Tls::Parts {
  SSL_CTX* context = nullptr;
  std::vector<std::weak_ptr<Link>> links;
  ~Parts() { SSL_CTX_free(context); }
};

Tls::Tls(const std::string& key_file, const std::string& certificate_file)
    : parts_(std::make_unique<Parts>()) {
  SSL_CTX* context = parts_->context = SSL_CTX_new(TLS_server_method());
  if (!context) throw std::runtime_error("TLS cannot be used: " + ssl_text());
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_IGNORE_UNEXPECTED_EOF);
  SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
  if (SSL_CTX_use_certificate_chain_file(context, certificate_file.c_str()) != 1)
    throw std::runtime_error("the certificate in " + certificate_file + " cannot be used: " + ssl_text());
  if (SSL_CTX_use_PrivateKey_file(context, key_file.c_str(), SSL_FILETYPE_PEM) != 1)
    throw std::runtime_error("the key in " + key_file + " cannot be used: " + ssl_text());
  if (SSL_CTX_check_private_key(context) != 1)
    throw std::runtime_error("the key in " + key_file + " is not that of the certificate");
}

Tls::~Tls() = default;

Socket Tls::wrap(asio::io_context& io, Socket client) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    throw std::runtime_error("no descriptor is free");
  const asio::generic::stream_protocol kind(AF_UNIX, 0);
  Socket ours(io, kind, ends[0]), plain(io, kind, ends[1]);
  SSL* ssl = SSL_new(parts_->context);
  if (!ssl) throw std::bad_alloc();
  client.non_blocking(true);
  ours.non_blocking(true);
  const auto link = std::make_shared<Link>(ssl, std::move(client), std::move(ours));
  std::erase_if(parts_->links, [](const std::weak_ptr<Link>& each) { return each.expired(); });
  parts_->links.push_back(link);
  link->start();
  return plain;
}

size_t Tls::busy() const {
  size_t count = 0;
  for (const std::weak_ptr<Link>& each : parts_->links)
    if (const std::shared_ptr<Link> link = each.lock()) count += link->busy() ? 1 : 0;
  return count;
}

#else

struct Tls::Parts {};

Tls::Tls(const std::string&, const std::string&) {
  throw std::runtime_error("this program was built without TLS (libssl-dev)");
}
Tls::~Tls() = default;
Tls::Socket Tls::wrap(boost::asio::io_context&, Socket client) { return client; }
size_t Tls::busy() const { return 0; }

#endif

}  // namespace greta::serve
