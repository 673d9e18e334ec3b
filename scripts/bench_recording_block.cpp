// Wan's transformer in the true widths of 1.3B with one block, written by hand on LibTorch, random weights, recorded
// through probes/cpp as a port records itself. scripts/bench_recording_levels.py compiles it and runs it in turns with
// the same model in PyTorch.
//     block FILE HIGH WIDE bf16|fp32 THREADS
// Each line on standard input, "LEVEL FORWARDS", is answered by four numbers: seconds of the first forward until it is
// in the file, of all others with the end of the file, and the same in processor time.
#include "parity_probe.hpp"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/InferenceMode.h>

#include <chrono>
#include <ctime>
#include <iostream>
#include <map>

namespace {

using at::Tensor;
using parity::probe::Options, parity::probe::Role, parity::probe::Writer;

constexpr int64_t kDim = 1536, kHeads = 12, kHead = 128, kFfn = 8960, kText = 4096, kWords = 512, kFreq = 256, kIn = 16;

parity::probe::Dtype dtype_of(const Tensor& t) {
  switch (t.scalar_type()) {
    case at::kBFloat16:
      return parity::probe::bf16;
    case at::kFloat:
      return parity::probe::f32;
    case at::kLong:
      return parity::probe::i64;
    default:
      return parity::probe::f64;
  }
}

// What a module returned is a point; at level op so is what any other op returned.
class Probe {
 public:
  Probe(Writer writer, bool ops) : writer_(std::move(writer)), ops_(ops) {}

  Tensor operator()(const std::string& path, Tensor t, Role role = Role::output) {
    if (writer_.on())
      writer_.write(path, t.data_ptr(), {t.sizes().data(), t.sizes().size()}, dtype_of(t), role,
                    {t.strides().data(), t.strides().size()});
    return t;
  }
  Tensor op(const std::string& path, Tensor t) { return ops_ ? (*this)(path, std::move(t)) : t; }
  void flush() { writer_.flush(); }
  void close() { writer_.close(); }

 private:
  Writer writer_;
  bool ops_;
};

class Wan {
 public:
  Wan(at::ScalarType dtype, int64_t high, int64_t wide) : dtype_(dtype), high_(high), wide_(wide) {
    at::manual_seed(0);
    const std::string one = "condition_embedder.", block = "blocks.0.";
    add("patch_embedding", {kDim, kIn, 1, 2, 2}, dtype);
    add(one + "time_embedder.linear_1", {kDim, kFreq}, at::kFloat);
    add(one + "time_embedder.linear_2", {kDim, kDim}, at::kFloat);
    add(one + "time_proj", {6 * kDim, kDim}, dtype);
    add(one + "text_embedder.linear_1", {kDim, kText}, dtype);
    add(one + "text_embedder.linear_2", {kDim, kDim}, dtype);
    for (const std::string attention : {"attn1.", "attn2."}) {
      for (const std::string name : {"to_q", "to_k", "to_v", "to_out.0"})
        add(block + attention + name, {kDim, kDim}, dtype);
      for (const std::string name : {"norm_q", "norm_k"}) add(block + attention + name, {kDim}, dtype, false);
    }
    add(block + "norm2", {kDim}, at::kFloat);
    add(block + "ffn.net.0.proj", {kFfn, kDim}, dtype), add(block + "ffn.net.2", {kDim, kFfn}, dtype);
    add("proj_out", {4 * kIn, kDim}, dtype);
    weights_[block + "scale_shift_table"] = at::randn({1, 6, kDim}) / 40;
    weights_["scale_shift_table"] = at::randn({1, 2, kDim}) / 40;
    latent_ = at::randn({1, kIn, 1, 2 * high, 2 * wide}).to(dtype), text_ = at::randn({1, kWords, kText}).to(dtype);
    angles_ = at::rand({1, high * wide, 1, kHead}, at::kDouble);
  }

  void record_weights(Probe& p) const {
    for (const auto& [name, weight] : weights_) p(name, weight, Role::weight);
  }

  Tensor forward(Probe& p) const {
    p("hidden_states", latent_, Role::input), p("timestep", at::full({1}, 500, at::kLong), Role::input);
    p("encoder_hidden_states", text_, Role::input);
    const Tensor cos = p("rope", angles_.cos().to(at::kFloat)), sin = p("rope[1]", angles_.sin().to(at::kFloat));
    const Tensor patches = p("patch_embedding", at::conv3d(latent_, weights_.at("patch_embedding.weight"),
                                                           weights_.at("patch_embedding.bias"), {1, 2, 2}));
    Tensor x = p.op("/clone.0", patches.flatten(2).transpose(1, 2).contiguous());
    const auto [time, steps, words] = conditions(p);
    x = block(p, x, words, steps, cos, sin);
    const auto shift_scale = p.op("/add.0", weights_.at("scale_shift_table") + time.unsqueeze(1)).chunk(2, 1);
    x = modulated(p, "", p("norm_out", normed(x)), shift_scale[1], shift_scale[0]);
    x = linear(p, "proj_out", x).reshape({1, 1, high_, wide_, 1, 2, 2, kIn}).permute({0, 7, 1, 4, 2, 5, 3, 6});
    return p("", x.reshape({1, kIn, 1, 2 * high_, 2 * wide_}));
  }

 private:
  void add(const std::string& name, at::IntArrayRef shape, at::ScalarType dtype, bool bias = true) {
    weights_[name + ".weight"] = (shape.size() == 1 ? at::ones(shape) : at::randn(shape) / 40).to(dtype);
    if (bias) weights_[name + ".bias"] = at::zeros({shape[0]}).to(dtype);
  }

  Tensor linear(Probe& p, const std::string& path, const Tensor& x) const {
    return p(path, at::linear(x, weights_.at(path + ".weight"), weights_.at(path + ".bias")));
  }

  static Tensor normed(const Tensor& x) { return at::layer_norm(x.to(at::kFloat), {kDim}, {}, {}, 1e-6); }

  std::tuple<Tensor, Tensor, Tensor> conditions(Probe& p) const {
    const std::string one = "condition_embedder.", time_name = one + "time_embedder", text_name = one + "text_embedder";
    Tensor time = linear(p, time_name + ".linear_1", p(one + "timesteps_proj", at::randn({1, kFreq})));
    time = linear(p, time_name + ".linear_2", p(time_name + ".act", at::silu(time)));
    time = p.op(one + "/to.0", p(time_name, time).to(dtype_));
    const Tensor steps = linear(p, one + "time_proj", p(one + "act_fn", at::silu(time)));
    Tensor words = linear(p, text_name + ".linear_1", text_);
    words = linear(p, text_name + ".linear_2", p(text_name + ".act_1", at::gelu(words, "tanh")));
    p(text_name, words), p("condition_embedder", time), p("condition_embedder[1]", steps);
    return {time, steps.unflatten(1, {6, kDim}), p("condition_embedder[2]", words)};
  }

  Tensor modulated(Probe& p, const std::string& path, const Tensor& x, const Tensor& scale, const Tensor& shift) const {
    const Tensor scaled = p.op(path + "/mul", x * p.op(path + "/add", 1 + scale));
    return p.op(path + "/to", p.op(path + "/add", scaled + shift).to(dtype_));
  }

  Tensor turned(Probe& p, const std::string& path, const Tensor& x, const Tensor& cos, const Tensor& sin) const {
    const auto pairs = x.unflatten(-1, {-1, 2}).unbind(-1);
    const Tensor c = cos.slice(-1, 0, kHead, 2), s = sin.slice(-1, 1, kHead, 2);
    const Tensor ac = p.op(path + "/mul", pairs[0] * c), bs = p.op(path + "/mul", pairs[1] * s);
    const Tensor as = p.op(path + "/mul", pairs[0] * s), bc = p.op(path + "/mul", pairs[1] * c);
    const Tensor out = at::stack({p.op(path + "/sub", ac - bs), p.op(path + "/add", as + bc)}, -1).flatten(-2);
    return p.op(path + "/to", out.to(dtype_));
  }

  Tensor attention(Probe& p, const std::string& path, const Tensor& x, const Tensor& from, const Tensor* cos,
                   const Tensor* sin) const {
    const auto norm = [&](const std::string& name, const Tensor& t) {
      return p(path + name, at::rms_norm(t, {kDim}, weights_.at(path + name + ".weight"), 1e-6));
    };
    Tensor q = norm(".norm_q", linear(p, path + ".to_q", x)).unflatten(2, {kHeads, kHead});
    Tensor k = norm(".norm_k", linear(p, path + ".to_k", from)).unflatten(2, {kHeads, kHead});
    const Tensor v = linear(p, path + ".to_v", from).unflatten(2, {kHeads, kHead});
    if (cos != nullptr) q = turned(p, path, q, *cos, *sin), k = turned(p, path, k, *cos, *sin);
    Tensor out = at::scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2));
    out = p.op(path + "/scaled_dot_product_attention", out.transpose(1, 2).flatten(2));
    return p(path, p(path + ".to_out.1", linear(p, path + ".to_out.0", out)));
  }

  Tensor gated(Probe& p, const Tensor& x, const Tensor& more, const Tensor& gate) const {
    const Tensor product = p.op("blocks.0/mul", more.to(at::kFloat) * gate);
    return p.op("blocks.0/to", p.op("blocks.0/add", x.to(at::kFloat) + product).to(dtype_));
  }

  Tensor block(Probe& p, Tensor x, const Tensor& words, const Tensor& steps, const Tensor& cos,
               const Tensor& sin) const {
    const std::string path = "blocks.0";
    const auto six = p.op(path + "/add", weights_.at(path + ".scale_shift_table") + steps.to(at::kFloat)).chunk(6, 1);
    Tensor y = modulated(p, path, p(path + ".norm1", normed(x)), six[1], six[0]);
    x = gated(p, x, attention(p, path + ".attn1", y, y, &cos, &sin), six[2]);
    y = at::layer_norm(p.op(path + "/to", x.to(at::kFloat)), {kDim}, weights_.at(path + ".norm2.weight"),
                       weights_.at(path + ".norm2.bias"), 1e-6);
    y = p.op(path + "/to", p(path + ".norm2", y).to(dtype_));
    x = p.op(path + "/add", x + attention(p, path + ".attn2", y, words, nullptr, nullptr));
    y = linear(p, path + ".ffn.net.0.proj", modulated(p, path, p(path + ".norm3", normed(x)), six[4], six[3]));
    y = p(path + ".ffn.net.1", p(path + ".ffn.net.0", at::gelu(y, "tanh")));
    y = p(path + ".ffn", linear(p, path + ".ffn.net.2", y));
    return p(path, gated(p, x, y, six[5]));
  }

  at::ScalarType dtype_;
  int64_t high_, wide_;
  std::map<std::string, Tensor> weights_;
  Tensor latent_, text_, angles_;
};

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }
double processor() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

void session(const Wan& model, const char* file, const std::string& level, int forwards) {
  Options options;
  options.statistics_only = level == "stats", options.sketches = level == "sketch";
  const double begin = now(), used = processor();
  Probe probe(Writer(level == "off" ? nullptr : file, options), level == "op");
  if (level != "off") model.record_weights(probe);
  model.forward(probe);
  probe.flush();  // the weights are written beside the model: none of it shall count as the others'
  const double middle = now(), used_so_far = processor();
  for (int i = 1; i < forwards; ++i) model.forward(probe);
  probe.close();
  std::cout << middle - begin << ' ' << now() - middle << ' ' << used_so_far - used << ' ' << processor() - used_so_far
            << std::endl;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 6) return 2;
  const c10::InferenceMode inference;
  at::set_num_threads(std::stoi(argv[5]));
  const Wan model(std::string_view(argv[4]) == "bf16" ? at::kBFloat16 : at::kFloat, std::stoll(argv[2]),
                  std::stoll(argv[3]));
  std::string level;
  for (int forwards = 0; std::cin >> level >> forwards;) session(model, argv[1], level, forwards);
  return 0;
} catch (const std::exception& error) {
  std::cerr << "block: " << error.what() << '\n';
  return 1;
}
