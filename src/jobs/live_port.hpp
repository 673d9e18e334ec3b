// A running port's side of a comparison: its tensors as they arrive over a socket, on a thread of their own.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "dump/tensor_stream.hpp"
#include "pair/candidate.hpp"

namespace parity {

/// Waits for one program and takes what it sends. Every tensor stays in memory: its pairing may change with what comes
/// later.
class LivePort {
 public:
  /// Throws Error when it cannot listen at `address` (HOST:PORT, port 0: any).
  explicit LivePort(const std::string& address);
  ~LivePort();
  LivePort(const LivePort&) = delete;
  LivePort& operator=(const LivePort&) = delete;

  /// With the port in use.
  const std::string& address() const { return listener_.address(); }

  /// Moves the outputs that have arrived to the end of `to`, waiting for one at most `most`. False: no more will come.
  /// Throws Error for bytes that are no stream.
  bool receive(std::vector<CandidateTensor>& to, std::chrono::milliseconds most);

  /// Lets the program write so many outputs in all before it waits to be let further. One that this is never called for
  /// need not wait, nor one whose stream does not say that it would.
  void let_ahead(size_t outputs);

  /// Tells the program to stop, and why.
  void stop(const std::string& path, const std::string& diagnosis);
  /// Waits no longer, for a program or its tensors.
  void hang_up();

  /// Has a program connected?
  bool connected();
  /// Once `receive` gave false: how the stream began (null: nobody came), and whether it came to its end.
  const nlohmann::json& head() const { return head_; }
  bool complete() const { return complete_; }

 private:
  void take();  // all of it; throws
  void run();   // the thread: takes, and notes how it ended
  void add(StreamedTensor tensor);
  bool is_let() const;        // under the mutex
  void tell_how_far() const;  // the same

  Listener listener_;
  std::atomic<bool> given_up_ = false;
  std::mutex mutex_;  // of all below
  std::condition_variable arrived_;
  std::unique_ptr<Connection> connection_;
  std::vector<CandidateTensor> waiting_;
  nlohmann::json head_;
  std::exception_ptr problem_;
  std::optional<size_t> let_;  // outputs
  bool complete_ = false, over_ = false;
  std::thread thread_;
};

}  // namespace parity
