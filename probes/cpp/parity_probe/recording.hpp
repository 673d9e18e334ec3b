// A recording under way: tensors are copied into a bounded queue, a thread writes them. Statistics and sketches are
// computed where the tensor lies, before `write` returns, and only they are queued: to copy a tensor into fresh memory
// takes longer. Private to parity_probe.hpp.
#pragma once
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "dump_file.hpp"
#include "keeper.hpp"
#include "pack.hpp"
#include "sink.hpp"
#include "types.hpp"
#include "workers.hpp"

namespace parity::probe {

class Recording final : public Sink {
 public:
  Recording(const std::string& path, Options options)
      : options_(std::move(options)), file_(path, about()), exceptions_(std::uncaught_exceptions()), keeper_(options_) {
    if (options_.threaded) thread_ = std::thread([this] { work(); });
  }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  ~Recording() override {
    try {
      close(std::uncaught_exceptions() <= exceptions_);
    } catch (const std::exception& failure) {
      std::fprintf(stderr, "parity_probe: %s\n", failure.what());
    }
  }

  bool own_process() const override { return file_.own_process(); }

  int write(std::string_view path, const void* data, const Sizes& shape, Dtype dtype, Role role, const Sizes& strides,
            const Shards& shards, const Line& line) override {
    check_tensor(data, shape, strides);
    if (!shards.empty()) check(shape, shards);
    Item item;
    item.path = path, item.role = role, item.shards = shards, item.source = line.text();
    const std::size_t bytes = keeper_.bytes(shape, dtype, role, shards);
    std::unique_lock lock(mutex_);
    if (closed_) throw std::invalid_argument("parity_probe: the writer is closed");
    item.call = calls_[{item.path, role}]++;
    const int call = item.call;
    if (failed_) return call;
    wait_for_room(lock, bytes);
    lock.unlock();
    try {
      item.kept = keeper_.keep(data, shape, dtype, role, strides, shards);  // outside the lock
    } catch (...) {
      lock.lock();
      waiting_bytes_ -= bytes;
      throw;
    }
    item.bytes = bytes;
    hand_over(std::move(item));
    return call;
  }

  void note(std::string_view text) override {
    Item item;
    item.note.emplace(text);
    hand_over(std::move(item));
  }

  void flush() override {
    Item item;
    item.flush = true;
    hand_over(std::move(item));
    drain();
  }

  void close(bool complete) override {
    {
      std::unique_lock lock(mutex_);
      if (std::exchange(closed_, true)) return;
      changed_.notify_all();
    }
    if (thread_.joinable()) thread_.join();
    if (!failed_) attempt([&] { file_.close(complete); });
    if (!failed_) return;
    file_.abandon();
    throw Error(failure_);
  }

  std::string error() const override {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  struct Item {
    std::string path, source;
    std::optional<std::string> note;  // which has no tensor
    int call = 0;
    Role role = Role::output;
    Kept kept;
    Shards shards;
    std::size_t bytes = 0;  // of what is queued
    bool flush = false;
  };

  DumpFile::About about() const {
    return {options_.model,  options_.producer,      options_.level(),
            options_.config, options_.reserve_bytes, options_.flush_seconds};
  }

  void check(const Sizes& shape, const Shards& shards) const {
    if (!options_.sketches) throw std::invalid_argument("parity_probe: shards can be recorded as sketches only");
    TensorSketch::whole_shape(shape.vector(), shards);
  }

  // A tensor larger than the whole queue waits until it has the queue for itself. Its bytes count from here on.
  void wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t bytes) {
    changed_.wait(lock, [&] {
      return !options_.threaded || failed_ || waiting_bytes_ == 0 || waiting_bytes_ + bytes <= options_.queue_bytes;
    });
    waiting_bytes_ += bytes;
  }

  void hand_over(Item item) {
    {
      const std::lock_guard lock(mutex_);
      if (closed_) throw std::invalid_argument("parity_probe: the writer is closed");
      queue_.push_back(std::move(item));
      changed_.notify_all();
    }
    if (!options_.threaded) drain_here();
  }

  void drain_here() {
    const std::lock_guard writing(file_mutex_);
    while (true) {
      Item item;
      {
        const std::lock_guard lock(mutex_);
        if (queue_.empty()) break;
        item = std::move(queue_.front());
        queue_.pop_front();
      }
      process(item);
    }
  }

  void drain() {
    if (!options_.threaded) drain_here();
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return failed_ || (queue_.empty() && !busy_) || closed_; });
    if (failed_) throw Error(failure_);
  }

  // The thread: one item after another; when none has come for `flush_seconds`, what there is reaches the file.
  void work() {
    std::unique_lock lock(mutex_);
    while (!closed_ || !queue_.empty()) {
      if (queue_.empty() && !changed_.wait_for(lock, std::chrono::duration<double>(options_.flush_seconds),
                                               [&] { return closed_ || !queue_.empty(); })) {
        Item idle;
        idle.flush = true;
        queue_.push_back(std::move(idle));
      }
      if (queue_.empty()) continue;
      Item item = std::move(queue_.front());
      queue_.pop_front();
      busy_ = true;
      lock.unlock();
      process(item);
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  void process(Item& item) {
    if (!failed_)
      attempt([&] {
        if (item.flush)
          file_.flush();
        else if (item.note)
          file_.event(note_event(*item.note));
        else
          record(item);
      });
    keeper_.give_back(item.kept.tensor);
    item.kept.sketch.reset();
    const std::lock_guard lock(mutex_);
    waiting_bytes_ -= item.bytes;
    changed_.notify_all();
  }

  void record(const Item& item) {
    const DefaultArithmetic arithmetic;
    const std::string key = std::to_string(next_++);
    const Packed& t = item.kept.tensor;
    std::string event =
        point_event(item.path, item.call, item.role, key, t.dtype, TensorSketch::whole_shape(t.shape, item.shards));
    if (!item.kept.statistics.empty()) {
      event += ",\"stats\":" + item.kept.statistics;
    } else if (item.kept.sketch) {
      event += ",\"sketch\":" + sketch(*item.kept.sketch, key);
    } else {
      file_.value(key, t);
      if (item.role == Role::weight && item.call == 0) file_.link("weights", item.path, key);
      event += ",\"k\":\"" + key + "\"";
    }
    if (!item.source.empty()) event += ",\"src\":" + quoted(item.source);
    file_.event(event + "}");
  }

  std::string sketch(const TensorSketch& sketch, const std::string& key) {
    Packed row;
    row.dtype = f64, row.shape = {static_cast<std::int64_t>(sketch.buckets().size())};
    row.bytes = Buffer(sketch.buckets().size() * sizeof(double));
    std::memcpy(row.bytes.data(), sketch.buckets().data(), row.bytes.size());
    file_.value(key, row);
    return sketch.json(key);
  }

  template <class Step>
  void attempt(Step step) {
    try {
      step();
    } catch (const std::exception& failure) {
      const std::lock_guard lock(mutex_);
      failure_ = failure.what();
      failed_ = true;
    }
  }

  Options options_;
  DumpFile file_;  // used by the thread alone, or under file_mutex_
  const int exceptions_;
  Keeper keeper_;
  std::mutex file_mutex_;
  std::thread thread_;
  mutable std::mutex mutex_;  // of everything below
  std::condition_variable changed_;
  std::deque<Item> queue_;
  std::map<std::pair<std::string, Role>, int> calls_;
  std::size_t waiting_bytes_ = 0;
  std::atomic<bool> failed_{false};
  bool closed_ = false, busy_ = false;
  std::string failure_;
  std::uint64_t next_ = 0;
};

}  // namespace parity::probe
