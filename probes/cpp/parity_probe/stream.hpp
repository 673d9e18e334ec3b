// What a Writer writes, sent to a listening `parity-check watch REF` instead of into a file:
// Writer("parity://HOST:PORT"). The messages (parity-stream/1) are those of Python's Writer, which
// probes/python/parity_probe/stream.py lists. Private to parity_probe.hpp.
//
// There is no queue and no thread: a write sends its tensor from where it lies, so that what was written before the
// program died has been sent, and a stop is thrown by the very next write. The program is ahead of the listener by the
// socket's buffers, or by as many outputs as one that judges in step with it says.
#pragma once
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include "connection.hpp"
#include "pack.hpp"
#include "provenance.hpp"
#include "sink.hpp"

namespace parity::probe {

class Stream final : public Sink {
 public:
  /// Connects. Throws Error when nothing listens there, std::invalid_argument for a level that stores no values.
  Stream(const std::string& path, const Options& options)
      : connection_(checked(path, options)), exceptions_(std::uncaught_exceptions()) {
    std::string hello =
        "{\"e\":\"hello\",\"format\":\"parity-stream/1\",\"waits\":true,\"level\":\"module\",\"producer\":" +
        quoted(options.producer) + ",\"model\":" + quoted(options.model) +
        ",\"provenance\":" + provenance(options.config) + "}";
    std::replace(hello.begin(), hello.end(), '\n', ' ');  // of a configuration laid out on several lines
    send(std::move(hello));
  }

  ~Stream() override {
    if (told_) return;
    try {
      close(std::uncaught_exceptions() <= exceptions_);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "parity_probe: %s\n", failure.what());
    }
  }

  bool own_process() const override { return getpid() == process_; }

  int write(std::string_view path, const void* data, const Sizes& shape, Dtype dtype, Role role, const Sizes& strides,
            const Shards& shards, const Line& line) override {
    check_tensor(data, shape, strides);
    if (!shards.empty()) throw std::invalid_argument("parity_probe: shards can be recorded as sketches only");
    const std::size_t bytes = packed_bytes(shape, dtype);
    const bool in_order = strides.size() == 0 || same_layout(shape, row_major(shape), strides.vector());
    const Packed copy = in_order ? Packed() : pack(data, shape, dtype, strides, Buffer(packed_bytes(shape, dtype)));
    const std::string source = line.text();
    const std::lock_guard lock(mutex_);
    require_open();
    const int call = calls_[{std::string(path), role}]++;
    attempt([&] {
      if (role == Role::output) connection_.wait_to_be_let(outputs_++);
      const std::string key = std::to_string(next_++);
      std::string point = point_event(path, call, role, key, dtype, shape.vector()) + ",\"k\":\"" + key + "\"";
      if (!source.empty()) point += ",\"src\":" + quoted(source);
      send("{\"e\":\"value\",\"k\":\"" + key + "\",\"d\":\"" + dtype.name + "\",\"s\":" + list_of(shape.vector()) +
               ",\"n\":" + std::to_string(bytes) + "}",
           in_order ? data : copy.bytes.data(), bytes);
      send(point + "}");
    });
    return call;
  }

  void note(std::string_view text) override {
    const std::lock_guard lock(mutex_);
    require_open();
    attempt([&] { send(note_event(text)); });
  }

  /// Everything has been sent; looks whether the listener said to stop.
  void flush() override {
    const std::lock_guard lock(mutex_);
    require_open();
    attempt([&] { connection_.listen(); });
    throw_failure();
  }

  void close(bool complete) override {
    const std::lock_guard lock(mutex_);
    if (std::exchange(closed_, true)) return;
    attempt([&] { send_last(complete ? "{\"e\":\"end\",\"complete\":true}" : "{\"e\":\"end\",\"complete\":false}"); });
    if (failed_)
      connection_.hang_up();
    else
      connection_.end();
    throw_failure();
  }

  std::string error() const override { return failed_ ? failure_ : ""; }

 private:
  static const std::string& checked(const std::string& path, const Options& options) {
    const std::string level = options.level();
    const Address address(path);
    if (level != "module") throw std::invalid_argument(path + ": level " + level + " cannot be streamed");
    if (const std::uint16_t one = 1; *reinterpret_cast<const char*>(&one) != 1)
      throw Error(path + ": only little-endian machines can stream");
    return path;
  }

  void require_open() const {
    if (closed_) throw std::invalid_argument("parity_probe: the writer is closed");
  }

  void send(std::string message, const void* data = nullptr, std::size_t size = 0) {
    message += '\n';
    connection_.send(message.data(), message.size());
    connection_.send(data, size);
    connection_.listen();
  }

  // Nothing is heard behind it: a listener that has read it may go.
  void send_last(std::string message) {
    message += '\n';
    connection_.listen();
    connection_.send(message.data(), message.size());
  }

  // The first failure ends the stream, so that no tensor is missing from one that calls itself complete. The program is
  // not disturbed by it, but for a stop, which somebody asked for.
  template <class Step>
  void attempt(Step step) {
    if (!failed_) {
      try {
        step();
      } catch (const Stopped& stop) {
        stop_ = stop;
        end(stop);
      } catch (const std::exception& failure) {
        end(failure);
      }
    }
    if (!stop_) return;
    told_ = true;
    throw Stopped(*stop_);
  }

  void end(const std::exception& failure) {
    connection_.hang_up();
    failure_ = failure.what();
    failed_ = true;
  }

  void throw_failure() {
    if (!failed_) return;
    told_ = true;
    throw Error(failure_);
  }

  Connection connection_;
  const int exceptions_;
  const pid_t process_ = getpid();
  std::mutex mutex_;  // of everything below, and of what is sent
  std::map<std::pair<std::string, Role>, int> calls_;
  std::uint64_t next_ = 0, outputs_ = 0;
  bool closed_ = false, told_ = false;  // told: the program knows of the failure
  std::optional<Stopped> stop_;
  std::string failure_;              // written once, before failed_
  std::atomic<bool> failed_{false};  // read without the mutex
};

}  // namespace parity::probe
