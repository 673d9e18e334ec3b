// The TCP connection from a Writer to the `parity-check watch REF` that listens at parity://HOST:PORT. POSIX sockets
// alone. Private to parity_probe.hpp.
#pragma once
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "answer.hpp"
#include "types.hpp"

namespace parity::probe {

struct Address {
  static constexpr std::string_view kScheme = "parity://";

  /// Does `path` name a listener, and no file?
  static bool is(std::string_view path) { return path.substr(0, kScheme.size()) == kScheme; }

  /// Throws Error for one that is not complete.
  explicit Address(const std::string& path) {
    const std::size_t colon = path.rfind(':');
    if (colon > kScheme.size())
      host = path.substr(kScheme.size(), colon - kScheme.size()), port = path.substr(colon + 1);
    port.erase(0, port.find_first_not_of('0'));
    const bool number = !port.empty() && port.size() < 6 && port.find_first_not_of("0123456789") == std::string::npos;
    if (host.empty() || !number || std::stoi(port) > 65535)
      throw Error(path + ": give parity://HOST:PORT, as parity-check watch prints it");
    if (host.front() == '[') host.erase(0, 1);
    if (!host.empty() && host.back() == ']') host.pop_back();
  }

  std::string host, port;  // an IPv6 host without its brackets
};

/// An open socket, closed at the end and in programs that this one becomes.
class Socket {
 public:
  explicit Socket(int number = -1) : number_(number) {
    if (number_ >= 0) fcntl(number_, F_SETFD, FD_CLOEXEC);
  }
  Socket(Socket&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Socket& operator=(Socket&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Socket() {
    if (number_ >= 0) close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

class Connection {
 public:
  /// Throws Error when `path` is no address or nothing listens there.
  explicit Connection(const std::string& path) : path_(path) {
    const Address address(path);
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* first = nullptr;
    const int unknown = getaddrinfo(address.host.c_str(), address.port.c_str(), &wanted, &first);
    std::string why = unknown == EAI_SYSTEM ? std::strerror(errno) : unknown != 0 ? gai_strerror(unknown) : "";
    const std::unique_ptr<addrinfo, Free> found(first);
    for (const addrinfo* place = first; place != nullptr && socket_.number() < 0; place = place->ai_next)
      if (const int problem = connect_to(*place); problem != 0) why = std::strerror(problem);
    if (socket_.number() < 0)
      throw Error(path + ": nothing listens there (" + why + "); start parity-check watch REF first");
  }

  /// Waits while the listener is busy. Throws Stopped when it said to stop, Error when it has gone.
  void send(const void* data, std::size_t size) {
    const char* bytes = static_cast<const char*>(data);
    while (size > 0) {
      const ssize_t sent = ::send(socket_.number(), bytes, size, kNoSignal);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) {
        const int problem = errno;
        listen();  // it may have said why
        fail(problem);
      }
      bytes += sent, size -= static_cast<std::size_t>(sent);
    }
  }

  /// Looks, without waiting, what the listener says. Throws as `send`.
  void listen() {
    char more[4096];
    while (true) {
      if (const std::size_t end = answer_.find('\n'); end != std::string::npos || answer_.size() >= kMostAnswer) {
        take(answer_.substr(0, end));
        answer_.erase(0, end + 1);
        continue;
      }
      const ssize_t got = recv(socket_.number(), more, sizeof more, MSG_DONTWAIT);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
      if (got < 0) fail(errno);
      if (got == 0) throw Error(path_ + ": parity-check watch has ended" + kAdvice);
      answer_.append(more, static_cast<std::size_t>(got));
    }
  }

  /// Before output number `output`, from 0: waits while a listener that judges in step with this program has not let it
  /// so far. Throws as `send`.
  void wait_to_be_let(std::uint64_t output) {
    if (output == 0 && wait_for_bytes(kFirstWord)) listen();
    while (let_ && output >= *let_) {
      wait_for_bytes(-1);
      listen();
    }
  }

  /// After the last byte. What a listener says to a socket that is closed ends the connection, also before it has read
  /// everything: one that says more than to stop is waited for.
  void end() {
    if (let_) {
      shutdown(socket_.number(), SHUT_WR);
      char more[4096];
      while (wait_for_bytes(kLastWord) && recv(socket_.number(), more, sizeof more, MSG_DONTWAIT) > 0) {
      }
    }
    hang_up();
  }

  /// The listener sees the end of the stream.
  void hang_up() { socket_ = Socket(); }

 private:
  static constexpr std::chrono::seconds kPatience{10};  // to be let in
  static constexpr int kFirstWord = 100;                // milliseconds: one that judges in step answers the first line
  static constexpr int kLastWord = 10000;               // milliseconds
  static constexpr std::size_t kMostAnswer = std::size_t{1} << 20;  // bytes of a line
  static constexpr const char* kAdvice = "; nothing more is sent: start it and this program again";
#ifdef MSG_NOSIGNAL
  static constexpr int kNoSignal = MSG_NOSIGNAL;  // a listener that has gone must not kill this program
#else
  static constexpr int kNoSignal = 0;  // SO_NOSIGPIPE instead
#endif

  struct Free {
    void operator()(addrinfo* list) const { freeaddrinfo(list); }
  };

  // A line of the listener's: how far this program may go, or that it must stop.
  void take(const std::string& line) {
    const auto said = Answer::strings_of(line);
    const auto has = [&](const char* name) { return said && said->count(name) > 0; };
    if (has("outputs")) {
      let_ = std::strtoull(said->at("outputs").c_str(), nullptr, 10);
      return;
    }
    if (!has("path") || !has("diagnosis"))
      throw Error(path_ + ": what listens there is not parity-check watch; give the address that it prints");
    throw Stopped(path_, said->at("path"), said->at("diagnosis"));
  }

  // False: none came within so many milliseconds (-1: any number).
  bool wait_for_bytes(int milliseconds) const {
    pollfd watched{socket_.number(), POLLIN, 0};
    return poll(&watched, 1, milliseconds) > 0;
  }

  [[noreturn]] void fail(int problem) const {
    throw Error(path_ + ": parity-check watch is gone (" + std::strerror(problem) + ")" + kAdvice);
  }

  // 0 and a socket, or the errno.
  int connect_to(const addrinfo& place) {
    Socket socket(::socket(place.ai_family, place.ai_socktype, place.ai_protocol));
    if (socket.number() < 0) return errno;
    if (const int problem = reach(socket.number(), place); problem != 0) return problem;
    const int yes = 1;
    setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
#ifdef SO_NOSIGPIPE
    setsockopt(socket.number(), SOL_SOCKET, SO_NOSIGPIPE, &yes, sizeof yes);
#endif
    socket_ = std::move(socket);
    return 0;
  }

  // connect(), but given up after kPatience; a blocking socket afterwards.
  static int reach(int socket, const addrinfo& place) {
    const int flags = fcntl(socket, F_GETFL);
    fcntl(socket, F_SETFL, flags | O_NONBLOCK);
    int problem = connect(socket, place.ai_addr, place.ai_addrlen) == 0 ? 0 : errno;
    if (problem == EINPROGRESS || problem == EINTR) problem = outcome(socket);
    fcntl(socket, F_SETFL, flags);
    return problem;
  }

  // Of a connection under way: 0 or an errno.
  static int outcome(int socket) {
    const auto end = std::chrono::steady_clock::now() + kPatience;
    pollfd watched{socket, POLLOUT, 0};
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
      const int ready = left.count() > 0 ? poll(&watched, 1, static_cast<int>(left.count())) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready < 0) return errno;
      if (ready == 0) return ETIMEDOUT;
      int problem = 0;
      socklen_t size = sizeof problem;
      return getsockopt(socket, SOL_SOCKET, SO_ERROR, &problem, &size) == 0 ? problem : errno;
    }
  }

  const std::string path_;
  Socket socket_;
  std::string answer_;                // what the listener said and nobody took
  std::optional<std::uint64_t> let_;  // outputs that may be written; none: any number
};

}  // namespace parity::probe
