// Reads a clip ahead in a thread of its own, so that two clips decode while frames are measured. Frames' memory is used
// again.
#pragma once
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "video/frame.hpp"

namespace parity {

class ReadAhead {
 public:
  explicit ReadAhead(FrameSource& source, size_t ahead = 2);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// The next frame, null at the end. Throws what the source threw.
  std::shared_ptr<const Frame> next();

 private:
  struct Pool {  // outlives the reader while frames are out
    std::mutex mutex;
    std::vector<std::unique_ptr<Frame>> free;
  };

  void run();
  std::shared_ptr<Frame> fresh();

  FrameSource& source_;
  size_t ahead_;
  std::shared_ptr<Pool> pool_ = std::make_shared<Pool>();
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<const Frame>> ready_;
  bool ended_ = false, stop_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace parity
