// Which values each op reads, writes and makes, and which of them share memory. Read from the recording; nothing is
// executed.
#pragma once
#include <unordered_map>
#include <unordered_set>

#include "trace/program.hpp"

namespace parity {

struct OpFlow {
  std::vector<int64_t> reads;   // value ids among the arguments, those written to included
  std::vector<int64_t> writes;  // value ids written in place
  std::vector<int64_t> fresh;   // value ids that this op defines
  int64_t base = -1;            // of a view: the value whose memory the fresh ones share
};

struct Flow {
  std::vector<OpFlow> ops;                         // one an op
  std::unordered_map<int64_t, int64_t> root;       // value id -> the first value with that memory
  std::unordered_map<int64_t, int> last_write;     // root -> index of the last op that writes to it; absent: none
  std::unordered_map<int64_t, int64_t> leaf_base;  // leaves that lie in another value's memory -> that value

  /// Is the memory of `id` written to by an op at `position` or later?
  bool written_from(int64_t id, int position) const;
};

Flow analyse_flow(const Program& program);

/// Value ids that an op writes to in place: what its schema says and what was recorded.
std::vector<int64_t> written_ids(const Op& op);

/// Value id of argument number `position`, -1 when it is not a tensor.
int64_t argument_id(const Op& op, size_t position);

/// Every value id in an encoded argument (FORMAT.md, "Arguments"), in order.
void collect_ids(const nlohmann::json& argument, std::vector<int64_t>& ids);

}  // namespace parity
