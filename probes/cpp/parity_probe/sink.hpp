// Where a Writer writes to: a file (recording.hpp) or a listening parity-check watch (stream.hpp). Private to
// parity_probe.hpp, but for Options.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sketch.hpp"
#include "text.hpp"
#include "types.hpp"

namespace parity::probe {

struct Options {
  std::string model;                                // class name of what is recorded
  std::string config = "null";                      // its configuration, as JSON text
  std::string producer = "parity_probe.hpp 0.1.0";  //
  // Of files; a stream sends at once what is written, and all of it:
  double flush_seconds = 1;  // after as long, what was written can be read by others, also after a kill
  bool threaded = true;      // write on a thread of its own; `write` then only copies, or describes
  std::size_t threads = 0;   // that describe a tensor (statistics, sketches) while `write` waits, its own with them; 0:
                             // as OMP_NUM_THREADS says or as there are cores, 16 at most. Without `threaded` always 1
  std::size_t queue_bytes = std::size_t{256}
                            << 20;  // copied and not yet written; `write` waits when there would be more
  bool statistics_only = false;     // no values: count, mean, std, extremes, non-finite (FORMAT.md, level stats)
  bool sketches = false;            // a few kB of each tensor instead of its values (FORMAT.md, level sketch)
  std::uint64_t reserve_bytes = std::uint64_t{4}
                                << 20;  // left free on the disk, so that the file can still be closed properly

  const char* level() const { return statistics_only ? "stats" : sketches ? "sketch" : "module"; }
};

/// The functions are those of Writer, which documents them.
class Sink {
 public:
  Sink() = default;
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;
  virtual ~Sink() = default;

  virtual bool own_process() const = 0;  // false in a forked child
  virtual int write(std::string_view path, const void* data, const Sizes& shape, Dtype dtype, Role role,
                    const Sizes& strides, const Shards& shards, const Line& line) = 0;
  virtual void note(std::string_view text) = 0;
  virtual void flush() = 0;
  virtual void close(bool complete) = 0;
  virtual std::string error() const = 0;
};

/// The event of one tensor, without what tells where its value is and without its end.
inline std::string point_event(std::string_view path, int call, Role role, const std::string& key, Dtype dtype,
                               const std::vector<std::int64_t>& shape) {
  return "{\"e\":\"point\",\"path\":" + quoted(path) + ",\"call\":" + std::to_string(call) + ",\"role\":\"" +
         name_of(role) + "\",\"v\":" + key + ",\"d\":\"" + dtype.name + "\",\"s\":" + list_of(shape);
}

inline std::string note_event(std::string_view text) { return "{\"e\":\"note\",\"text\":" + quoted(text) + "}"; }

}  // namespace parity::probe
