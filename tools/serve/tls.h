// TLS in front of a connection. Its bytes go through a pair of sockets, so that a connection knows nothing of
// it.
#pragma once
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <string>
#include <utility>

namespace greta::serve {

class Tls {
 public:
  using Socket = boost::asio::generic::stream_protocol::socket;
  // Files in PEM's form. Throws std::runtime_error if they cannot be used, or if this build has no TLS.
  Tls(const std::string& key_file, const std::string& certificate_file);
  ~Tls();
  Tls(const Tls&) = delete;
  Tls& operator=(const Tls&) = delete;
  // The plain side of a client's socket. Throws where no descriptors are free.
  Socket wrap(boost::asio::io_context& io, Socket client);
  size_t busy() const;  // Clients to whom something is still to be sent. On the network's thread.

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace greta::serve
