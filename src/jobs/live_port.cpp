#include "jobs/live_port.hpp"

#include <fmt/format.h>

namespace parity {

LivePort::LivePort(const std::string& address) : listener_(address), thread_([this] { run(); }) {}

LivePort::~LivePort() {
  hang_up();
  thread_.join();
}

void LivePort::run() {
  std::exception_ptr problem;
  try {
    take();
  } catch (...) {
    problem = std::current_exception();  // thrown again where the tensors are asked for
  }
  const std::lock_guard lock(mutex_);
  problem_ = problem;
  over_ = true;
  arrived_.notify_all();
}

void LivePort::take() {
  Connection* connection = nullptr;
  {
    auto accepted = listener_.accept(given_up_);
    const std::lock_guard lock(mutex_);
    connection_ = std::move(accepted);
    connection = connection_.get();
    if (connection == nullptr || given_up_) return;
  }
  TensorStream stream(*connection, address());
  {
    const std::lock_guard lock(mutex_);
    head_ = stream.head();
    tell_how_far();
  }
  while (auto tensor = stream.next())
    if (tensor->role == "output") add(std::move(*tensor));
  const std::lock_guard lock(mutex_);
  complete_ = stream.complete();
  if (is_let()) connection->hang_up();  // which it waits for
}

void LivePort::add(StreamedTensor tensor) {
  CandidateTensor candidate;
  candidate.path = std::move(tensor.path);
  candidate.call = tensor.call;
  candidate.dtype = tensor.value.scalar_type();
  candidate.shape = tensor.value.sizes().vec();
  candidate.load = [value = std::move(tensor.value)] { return value; };
  candidate.source = std::move(tensor.source);
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(candidate));
  arrived_.notify_all();
}

bool LivePort::receive(std::vector<CandidateTensor>& to, std::chrono::milliseconds most) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, most, [this] { return over_ || !waiting_.empty(); });
  if (problem_) std::rethrow_exception(problem_);
  std::move(waiting_.begin(), waiting_.end(), std::back_inserter(to));
  waiting_.clear();
  return !over_;
}

void LivePort::let_ahead(size_t outputs) {
  const std::lock_guard lock(mutex_);
  if (let_ == outputs) return;
  let_ = outputs;
  tell_how_far();
}

// A program of an earlier version would take any line for one that tells it to stop.
bool LivePort::is_let() const { return connection_ && let_ && head_.is_object() && head_.contains("waits"); }

void LivePort::tell_how_far() const {
  if (is_let() && !over_)
    connection_->send(nlohmann::json{{"e", "ahead"}, {"outputs", fmt::format("{}", *let_)}}.dump() + "\n");
}

bool LivePort::connected() {
  const std::lock_guard lock(mutex_);
  return connection_ != nullptr;
}

void LivePort::stop(const std::string& path, const std::string& diagnosis) {
  const nlohmann::json line{{"e", "stop"}, {"path", path}, {"diagnosis", diagnosis}};
  const std::lock_guard lock(mutex_);
  if (connection_) connection_->send(line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

void LivePort::hang_up() {
  given_up_ = true;
  const std::lock_guard lock(mutex_);
  if (connection_) connection_->hang_up();
}

}  // namespace parity
