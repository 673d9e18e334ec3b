// Tensors from raw files, described by probes/cpp/parity_probe.hpp as tests/python/test_cpp_probe_described.py asks:
//     described FILE stats|sketch|module THREADS FOLDER
// Each line on standard input, "NAME DTYPE BYTES RANK SIZES… STRIDES… SHARDS (AXIS OFFSET TOTAL)…", is one tensor: the
// elements in FOLDER/NAME from byte BYTES on. With QUEUE in the environment it holds so many bytes; with FLUSH the
// thread that writes takes subnormals for 0, rounds up, and traps.
//     described lanes
// compares the sums of blocks of all small sizes, by vectors of 16 bytes and by the widest there are, with plain loops.
#include <cfenv>
#include <cstdio>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "parity_probe.hpp"

namespace {

using namespace parity::probe;

Dtype named(const std::string& name) {
  for (const Dtype& dtype :
       {f64, f32, f16, bf16, f8_e4m3, f8_e5m2, i64, i32, i16, i8, u64, u32, u16, u8, boolean, c64, c128})
    if (name == dtype.name) return dtype;
  throw std::invalid_argument(name);
}

void other_arithmetic() {
  std::fesetround(FE_UPWARD);
#if defined(__x86_64__)
  _mm_setcsr((_mm_getcsr() | 0x8040U) & ~0x0080U);  // flush and zero subnormals; trap at invalid operations
#endif
}

void describe(char** words) {
  Options options;
  options.statistics_only = std::string(words[2]) == "stats", options.sketches = std::string(words[2]) == "sketch";
  options.threads = std::stoul(words[3]);
  if (const char* most = std::getenv("QUEUE")) options.queue_bytes = std::stoul(most);
  Writer w(words[1], options);
  if (std::getenv("FLUSH") != nullptr) other_arithmetic();
  std::string name, dtype;
  std::size_t bytes = 0, rank = 0;
  while (std::cin >> name >> dtype >> bytes >> rank) {
    std::vector<std::int64_t> sizes(rank), strides(rank);
    for (std::int64_t& size : sizes) std::cin >> size;
    for (std::int64_t& stride : strides) std::cin >> stride;
    std::size_t count = 0;
    std::cin >> count;
    Shards shards(count);
    for (Shard& shard : shards) std::cin >> shard.axis >> shard.offset >> shard.total;
    std::ifstream file(std::string(words[4]) + "/" + name, std::ios::binary);
    const std::vector<char> data((std::istreambuf_iterator<char>(file)), {});
    w.write(name, data.data() + bytes, sizes, named(dtype), Role::output, strides, shards);
  }
  if (std::getenv("FLUSH") != nullptr && std::fegetround() != FE_UPWARD) std::exit(3);
  std::fesetenv(FE_DFL_ENV);
}

bool same(const BlockSums& a, const BlockSums& b) {
  return a.sum == b.sum && a.magnitudes == b.magnitudes && a.squares == b.squares && a.minimum == b.minimum &&
         a.maximum == b.maximum && a.zero == b.zero;
}

// Whole numbers: their sums are exact in any order.
int lanes() {
  std::vector<float> x(300);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>((i * 7919) % 13) - 5;
  for (std::size_t begin = 0; begin < 9; ++begin)
    for (std::size_t n = 1; begin + n <= x.size(); ++n) {
      const char* at = reinterpret_cast<const char*>(x.data() + begin);
      BlockSums plain, small;
      plain.minimum = plain.maximum = small.minimum = small.maximum = x[begin];
      std::size_t done = 0;
#if defined(__GNUC__)
      if (n >= 4) done = vectors::whole<16>(at, n, small);
#endif
      for (std::size_t i = 0; i < n; ++i) plain.add(x[begin + i]);
      for (std::size_t i = done; i < n; ++i) small.add(x[begin + i]);
      if (!same(plain, small) || !same(plain, block_sums(at, n))) return 1;
    }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::string(argv[1]) == "lanes") return lanes();
  if (argc != 5) return 2;
  describe(argv);
}
