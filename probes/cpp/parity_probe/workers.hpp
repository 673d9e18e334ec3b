// Threads that look at a tensor together with the thread that writes it: the program waits for that one, and its own
// threads mostly with it.
#pragma once
#include <atomic>
#include <cfenv>
#include <condition_variable>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace parity::probe {

/// The default floating-point environment while this lives: the program under recording may have told its threads to
/// trap, to round otherwise, or to take subnormals for 0.
class DefaultArithmetic {
 public:
  DefaultArithmetic() { std::fegetenv(&before_), std::fesetenv(FE_DFL_ENV); }
  ~DefaultArithmetic() { std::fesetenv(&before_); }
  DefaultArithmetic(const DefaultArithmetic&) = delete;
  DefaultArithmetic& operator=(const DefaultArithmetic&) = delete;

 private:
  std::fenv_t before_;
};

class Workers {
 public:
  static constexpr std::size_t kMost = 16;

  /// `threads`: with the caller's; 0: as many as the program may use, by OMP_NUM_THREADS or its cores, kMost at most.
  /// They are started when there is first something for them, with the arithmetic of that moment.
  explicit Workers(std::size_t threads) : wanted_(threads != 0 ? threads : allowed()) {}
  ~Workers() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  /// work(0) … work(count - 1), each once, by this thread and the others unless they help
  /// another one; when it returns, none of them is at work any more. `work` must not throw.
  void each(std::size_t count, const std::function<void(std::size_t)>& work) {
    const std::unique_lock mine(turn_, std::try_to_lock);
    if (count < 2 || !mine.owns_lock() || wanted_ < 2) {
      for (std::size_t i = 0; i < count; ++i) work(i);
      return;
    }
    start();
    {
      const std::lock_guard lock(mutex_);
      work_ = &work, count_ = count, next_ = 0;
    }
    changed_.notify_all();
    help(work, count);
    std::unique_lock lock(mutex_);
    work_ = nullptr;  // who has not come by now need not
    idle_.wait(lock, [this] { return helping_ == 0; });
  }

 private:
  static std::size_t allowed() {
    const char* told = std::getenv("OMP_NUM_THREADS");
    const int number = told == nullptr ? 0 : std::atoi(told);
    const std::size_t threads = number > 0 ? static_cast<std::size_t>(number) : std::thread::hardware_concurrency();
    return threads < kMost ? threads : kMost;
  }

  void start() {
    if (!threads_.empty()) return;
    try {
      while (threads_.size() + 1 < wanted_) threads_.emplace_back([this] { run(); });
    } catch (const std::system_error&) {  // no more to be had: with fewer
      wanted_ = threads_.size() + 1;
    }
  }

  void help(const std::function<void(std::size_t)>& work, std::size_t count) {
    for (std::size_t i = next_++; i < count; i = next_++) work(i);
  }

  void run() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return closing_ || (work_ != nullptr && next_ < count_); });
      if (closing_) return;
      const auto* work = work_;
      const std::size_t count = count_;
      ++helping_;
      lock.unlock();
      help(*work, count);
      lock.lock();
      if (--helping_ == 0) idle_.notify_all();
    }
  }

  std::size_t wanted_;
  std::mutex turn_;  // of the one whom the others help
  std::vector<std::thread> threads_;
  std::mutex mutex_;  // of everything below
  std::condition_variable changed_, idle_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t count_ = 0, helping_ = 0;
  std::atomic<std::size_t> next_{0};
  bool closing_ = false;
};

}  // namespace parity::probe
