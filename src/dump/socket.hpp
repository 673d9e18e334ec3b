// One TCP connection from a program to this one.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace parity {

/// An open file descriptor, closed at the end.
class SocketDescriptor {
 public:
  explicit SocketDescriptor(int number = -1) : number_(number) {}
  SocketDescriptor(SocketDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  SocketDescriptor& operator=(SocketDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~SocketDescriptor();
  int number() const { return number_; }

 private:
  int number_;
};

class Connection {
 public:
  explicit Connection(SocketDescriptor socket) : socket_(std::move(socket)) {}

  /// The next line without its end; nullopt when the other side has gone. Throws Error for a line longer than `most`.
  std::optional<std::string> line(size_t most);
  /// The next `size` bytes; false when the other side goes before them.
  bool bytes(void* to, size_t size);
  /// Sends `text`; what the other side does not want to hear is lost.
  void send(std::string_view text) const;
  /// Ends both directions; whoever waits in `line` or `bytes` comes back. From any thread.
  void hang_up() const;

 private:
  size_t receive(void* to, size_t size) const;  // 0: gone

  SocketDescriptor socket_;
  std::string waiting_;  // received behind the last line
  size_t read_ = 0;      // of it
};

class Listener {
 public:
  /// HOST:PORT ([HOST]:PORT for IPv6); port 0: any that is free. Throws Error when it cannot listen there.
  explicit Listener(const std::string& address);
  /// HOST:PORT with the port in use.
  const std::string& address() const { return address_; }
  /// The first program that connects, after which nobody listens any more; null once `given_up`.
  std::unique_ptr<Connection> accept(const std::atomic<bool>& given_up);

 private:
  SocketDescriptor socket_;
  std::string address_;
};

}  // namespace parity
