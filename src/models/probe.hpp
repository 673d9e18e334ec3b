// The one interface through which a model's forward is recorded, compared teacher-forced, or run free.
#pragma once
#include <ATen/ATen.h>

#include <string>
#include <string_view>

namespace parity {

/// A model calls `probe(name, value)` after every op and goes on with what it returns. This base does nothing and costs
/// one virtual call: a recording probe stores the value, a comparing probe measures it, a teacher-forcing one hands the
/// reference's value back.
class Probe {
 public:
  virtual ~Probe() = default;

  at::Tensor operator()(std::string_view name, at::Tensor value) {
    if (!active_) return value;
    return seen(path_ + std::string(name), std::move(value));
  }

  /// False: nobody looks, so a value may be written over and a point that costs something left out.
  bool active() const { return active_; }

  /// A module: `Probe::Scope in_block(probe, "blocks.0.")` prefixes the names below it.
  class Scope {
   public:
    Scope(Probe& probe, std::string_view prefix) : probe_(probe), length_(probe.path_.size()) {
      if (probe.active_) probe_.path_.append(prefix);
    }
    ~Scope() { probe_.path_.resize(length_); }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Probe& probe_;
    size_t length_;
  };

 protected:
  explicit Probe(bool active) : active_(active) {}
  virtual at::Tensor seen(const std::string& path, at::Tensor value) = 0;

 private:
  bool active_;
  std::string path_;
};

/// Probes off.
class NoProbe final : public Probe {
 public:
  NoProbe() : Probe(false) {}

 private:
  at::Tensor seen(const std::string&, at::Tensor value) override { return value; }
};

}  // namespace parity
