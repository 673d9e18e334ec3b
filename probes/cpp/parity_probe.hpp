// Records named tensors of a C++ program for parity-check; the file format is probes/FORMAT.md. Header-only, C++17,
// needs HDF5 alone
// (-Iprobes/cpp, pkg-config --cflags --libs hdf5, -pthread).
//
//     parity::probe::Writer w("cand.h5");
//     w.write("blocks.0.norm1", data, {1, 12, 64}, parity::probe::bf16);    // a repeated path is its next call
//
// Writer("parity://127.0.0.1:7077") sends to a listening `parity-check watch REF` instead, which judges the program
// while it runs.
//
// A Writer without a file is off: `write` is then one comparison (2 to 4 ns measured). Otherwise a tensor of 4 KiB
// costs the caller 5 to 7 us, 1 GiB in 16 MiB tensors 0.6 s (into memory-backed /dev/shm, two busy cores;
// tests/probe/port.cpp cost). HDF5 is used on the writer's thread: a program that itself uses an HDF5 library built
// without thread safety at the same time sets Options::threaded = false.
#pragma once
#include <memory>
#include <string>
#include <string_view>

#include "parity_probe/recording.hpp"
#include "parity_probe/sink.hpp"
#include "parity_probe/stream.hpp"
#include "parity_probe/types.hpp"

namespace parity::probe {

/// One recording. Thread-safe. The recorded program is never disturbed: when the file cannot be written, recording
/// stops, `write` goes on doing nothing, and `close` (or `flush`) throws; what reached the file by its last flush stays
/// readable, marked incomplete. So it does after a kill. The destructor closes, but marks the file incomplete when an
/// exception is on its way, and prints a failure to stderr.
///
/// A stream (`path` is parity://HOST:PORT) is sent by the thread that writes, without a copy or a queue: `write` waits
/// while the listener is busy. A listener that goes ends the recording and not the program, as a full disk does.
/// `watch --stop` is asked for, and does: once it has found the first divergence, the next `write`, `note`, `flush` or
/// `close` throws Stopped, and so does every later one. A program that dies leaves a partial report.
class Writer {
 public:
  /// Off: records nothing.
  Writer() = default;

  /// Records to `path`, or nothing when it is null or empty (`Writer w(std::getenv("PARITY_DUMP"))`). An existing file
  /// is replaced at once. Throws Error when no file can be made there or nothing listens there, std::invalid_argument
  /// for statistics or sketches that are to be streamed.
  explicit Writer(const char* path, Options options = {}) {
    if (path == nullptr || *path == '\0') return;
    if (Address::is(path))
      sink_.reset(new Stream(path, options));
    else
      sink_.reset(new Recording(path, std::move(options)));
  }
  explicit Writer(const std::string& path, Options options = {}) : Writer(path.c_str(), std::move(options)) {}
  Writer(Writer&&) noexcept = default;
  Writer& operator=(Writer&&) = delete;
  ~Writer() = default;

  /// Is anything recorded here? Not without a path, nor in a forked child.
  bool on() const { return sink_ != nullptr && sink_->own_process(); }

  /// Records `data` (row-major; or with `strides`, in elements, any sign) as tensor `path`; the data has been
  /// copied, described (statistics and sketches, by Options::threads), or sent, when it returns. Returns the number of
  /// earlier writes of this path and role, -1 when off. Throws std::invalid_argument: null data, a negative size,
  /// strides of another rank, a closed writer; Stopped: see above. With Options::sketches, `shards` say that this is a
  /// part of tensor `path`: the files of all ranks are added up by `python -m parity_probe sketch`. `line`: where in
  /// the code the tensor was computed, by default the line of this call.
  int write(std::string_view path, const void* data, Sizes shape, Dtype dtype, Role role = Role::output,
            Sizes strides = {}, const Shards& shards = {}, Line line = Line::here()) {
    return on() ? sink_->write(path, data, shape, dtype, role, strides, shards, line) : -1;
  }

  /// The same with the dtype of `T`: float, double, std::complex, bool, integers.
  template <class T>
  int write(std::string_view path, const T* data, Sizes shape, Role role = Role::output, Sizes strides = {},
            const Shards& shards = {}, Line line = Line::here()) {
    return write(path, static_cast<const void*>(data), shape, dtype_of<T>(), role, strides, shards, line);
  }

  /// Leaves a remark in the event stream.
  void note(std::string_view text) {
    if (on()) sink_->note(text);
  }

  /// Waits until everything written so far can be read by others. Throws Error when writing has failed.
  void flush() {
    if (on()) sink_->flush();
  }

  /// Ends the file; `complete` false marks it as interrupted. A second call does nothing. Throws Error when writing has
  /// failed.
  void close(bool complete = true) {
    if (on()) sink_->close(complete);
  }

  /// Why recording has stopped; "" while all is well.
  std::string error() const { return on() ? sink_->error() : ""; }

 private:
  // A forked child has the memory but not the thread, and its parent's socket: it must neither write nor wait, so there
  // the recording is left alone.
  struct InOwnProcess {
    void operator()(Sink* sink) const {
      if (sink->own_process()) delete sink;
    }
  };

  std::unique_ptr<Sink, InOwnProcess> sink_;
};

}  // namespace parity::probe
