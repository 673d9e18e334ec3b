#include "video/reader.hpp"

namespace parity {

ReadAhead::ReadAhead(FrameSource& source, size_t ahead) : source_(source), ahead_(ahead), thread_([this] { run(); }) {}

ReadAhead::~ReadAhead() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

std::shared_ptr<Frame> ReadAhead::fresh() {
  std::unique_ptr<Frame> frame;
  {
    const std::lock_guard lock(pool_->mutex);
    if (!pool_->free.empty()) {
      frame = std::move(pool_->free.back());
      pool_->free.pop_back();
    }
  }
  if (!frame) frame = std::make_unique<Frame>();
  return {frame.release(), [pool = pool_](Frame* done) {
            const std::lock_guard lock(pool->mutex);
            pool->free.emplace_back(done);
          }};
}

void ReadAhead::run() {
  try {
    while (true) {
      std::shared_ptr<Frame> frame = fresh();
      const bool more = source_.read(*frame);
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return stop_ || ready_.size() < ahead_; });
      if (more && !stop_) ready_.push_back(std::move(frame));
      ended_ = !more || stop_;
      lock.unlock();
      changed_.notify_all();
      if (ended_) return;
    }
  } catch (...) {
    const std::lock_guard lock(mutex_);
    failure_ = std::current_exception();
    ended_ = true;
    changed_.notify_all();
  }
}

std::shared_ptr<const Frame> ReadAhead::next() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return ended_ || !ready_.empty(); });
  if (ready_.empty()) {
    if (failure_) std::rethrow_exception(failure_);
    return nullptr;
  }
  std::shared_ptr<const Frame> frame = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return frame;
}

}  // namespace parity
