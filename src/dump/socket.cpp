#include "dump/socket.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"

namespace parity {
namespace {

constexpr size_t kReadAtOnce = 64 << 10;
constexpr int kPollMilliseconds = 100;

struct HostAndPort {
  std::string host, port;
};

HostAndPort place_of(const std::string& address) {
  const size_t colon = address.rfind(':');
  HostAndPort place{address.substr(0, colon), colon == std::string::npos ? "" : address.substr(colon + 1)};
  const bool number = !place.port.empty() && place.port.size() < 6 &&
                      std::all_of(place.port.begin(), place.port.end(), [](char c) { return c >= '0' && c <= '9'; });
  if (place.host.empty() || !number || std::stoi(place.port) > 65535)
    throw Error(fmt::format("--listen '{}': give HOST:PORT, as 127.0.0.1:7077", address));
  if (place.host.front() == '[' && place.host.back() == ']') place.host = place.host.substr(1, place.host.size() - 2);
  return place;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

Addresses looked_up(const HostAndPort& place, const std::string& address) {
  addrinfo wanted{};
  wanted.ai_flags = AI_PASSIVE;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int problem = ::getaddrinfo(place.host.c_str(), place.port.c_str(), &wanted, &found); problem != 0)
    throw Error(fmt::format("--listen {}: no such address ({})", address, ::gai_strerror(problem)));
  return {found, &freeaddrinfo};
}

int port_of(const SocketDescriptor& socket) {
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (::getsockname(socket.number(), reinterpret_cast<sockaddr*>(&own), &size) != 0) return 0;
  return ntohs(own.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(own).sin6_port
                                         : reinterpret_cast<const sockaddr_in&>(own).sin_port);
}

}  // namespace

SocketDescriptor::~SocketDescriptor() {
  if (number_ >= 0) ::close(number_);
}

Listener::Listener(const std::string& address) {
  const HostAndPort place = place_of(address);
  const Addresses found = looked_up(place, address);
  socket_ = SocketDescriptor(::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol));
  const int yes = 1;
  ::setsockopt(socket_.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  if (socket_.number() < 0 || ::bind(socket_.number(), found->ai_addr, found->ai_addrlen) != 0 ||
      ::listen(socket_.number(), 1) != 0)
    throw Error(fmt::format("--listen {}: cannot listen there ({}); port 0 takes one that is free", address,
                            std::strerror(errno)));
  address_ = fmt::format("{}:{}", address.substr(0, address.rfind(':')), port_of(socket_));
}

std::unique_ptr<Connection> Listener::accept(const std::atomic<bool>& given_up) {
  while (!given_up) {
    pollfd watched{socket_.number(), POLLIN, 0};
    if (::poll(&watched, 1, kPollMilliseconds) <= 0) continue;
    SocketDescriptor socket(::accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.number() < 0) continue;
    socket_ = SocketDescriptor();
    return std::make_unique<Connection>(std::move(socket));
  }
  return nullptr;
}

std::optional<std::string> Connection::line(size_t most) {
  for (size_t searched = read_;;) {
    if (const size_t end = waiting_.find('\n', searched); end != std::string::npos) {
      std::string line = waiting_.substr(read_, end - read_);
      read_ = end + 1;
      return line;
    }
    waiting_.erase(0, read_);
    read_ = 0;
    if (waiting_.size() > most) throw Error(fmt::format("a line has more than {} bytes", most));
    searched = waiting_.size();
    waiting_.resize(searched + kReadAtOnce);
    const size_t got = receive(waiting_.data() + searched, kReadAtOnce);
    waiting_.resize(searched + got);
    if (got == 0) return std::nullopt;
  }
}

bool Connection::bytes(void* to, size_t size) {
  char* next = static_cast<char*>(to);
  const size_t there = std::min(size, waiting_.size() - read_);
  std::copy_n(waiting_.data() + read_, there, next);
  read_ += there;
  for (next += there, size -= there; size > 0;) {
    const size_t got = receive(next, size);
    if (got == 0) return false;
    next += got, size -= got;
  }
  return true;
}

size_t Connection::receive(void* to, size_t size) const {
  while (true) {
    const ssize_t got = ::recv(socket_.number(), to, size, 0);
    if (got < 0 && errno == EINTR) continue;
    return got < 0 ? 0 : static_cast<size_t>(got);  // reset: gone like any other
  }
}

void Connection::send(std::string_view text) const {
  while (!text.empty()) {
    const ssize_t sent = ::send(socket_.number(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return;
    text.remove_prefix(static_cast<size_t>(sent));
  }
}

void Connection::hang_up() const { ::shutdown(socket_.number(), SHUT_RDWR); }

}  // namespace parity
