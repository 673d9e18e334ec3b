// What enters a selected part of a program: the state of every value that comes from outside, as it was when the part
// began. Private to src/trace.
#pragma once
#include <map>

#include "trace/extract.hpp"
#include "trace/lane.hpp"
#include "trace/selection.hpp"

namespace parity {

/// Runs a program up to a selection, and through it, and keeps hold of the values asked for.
class Approach {
 public:
  /// `wanted`: ids to be held. With `port` the program runs from its beginning and goes on from the port's values
  /// wherever they are given; without, stored values are loaded and only what is missing is computed.
  Approach(const Dump& dump, const Program& program, const Flow& flow, const Selection& selection,
           std::set<int64_t> wanted, const PortValues& port, ShareDone progress);

  void run_to_begin();
  void run_selection();

  /// The state of a value now; nullopt when it is neither computed by now nor a leaf with data.
  std::optional<at::Tensor> find(int64_t id);

 private:
  void step(int op);
  void cross(int position);
  void hold(int64_t id);

  const Program& program_;
  const Flow& flow_;
  const Selection& selection_;
  std::set<int64_t> wanted_;
  const PortValues& port_;
  ShareDone progress_;
  Leaves leaves_;
  Lane lane_;
  size_t next_boundary_ = 0;
  std::map<int64_t, at::Tensor> held_;
};

/// A leaf of the extracted program.
struct EnteringLeaf {
  int64_t id = -1;
  at::Tensor tensor;  // its state
  int64_t base = -1;  // it lies in this leaf's memory: base.as_strided(shape, strides, offset); -1: in its own
  std::vector<int64_t> strides;
  int64_t offset = 0;
  bool made = false;  // no value of the program: memory that others are views of
};

/// Which of the values share memory that the selection writes to, or lie in memory in a way that a stored copy would
/// not repeat: those become views of a common leaf (`next_id` counts up for new ones), bases first.
/// Throws Error when shared memory is seen under several dtypes.
std::vector<EnteringLeaf> lay_out(const std::map<int64_t, at::Tensor>& values,
                                  const std::function<bool(int64_t id)>& written, int64_t& next_id);

/// The tensor that a leaf is when the values of the program are `of(id)`, wherever those lie; undefined when its base
/// says it, or nothing does.
at::Tensor state_with(const EnteringLeaf& leaf, const std::vector<EnteringLeaf>& all,
                      const std::function<std::optional<at::Tensor>(int64_t id)>& of);

}  // namespace parity
