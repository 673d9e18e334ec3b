// Constants of formulas and of hypotheses: what libraries compute with, and the sizes that a change is tried at. None
// of them decides anything: whether a change explains a difference is judged by its direction and its amplitude.
#pragma once
#include <array>
#include <cstdint>

namespace parity {

inline constexpr double kSigmoidGelu = 1.702;  // x sigmoid(1.702 x): Hendrycks and Gimpel 2016, arXiv 1606.08415
inline constexpr double kTanhGelu = .044715;   // 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)): the same

/// A change of free size (a scale, a gain, a limit) is tried at a hundredth, where it is linear; its amplitude is
/// estimated.
inline constexpr double kTried = .01;

/// Constants of fixed size that a port may have got wrong by a factor.
inline constexpr std::array kFactors{.1, .5, 2., 10.};

/// Bases of rotary embeddings are off by more than other constants: 100 and 1e6 for 1e4 are in use.
inline constexpr std::array kFactorsOfBases{.01, .1, .2, .5, 2., 5., 10., 100.};

/// Sliding windows tried in attention: each size up to the first number of keys, else those around powers of two.
inline constexpr int64_t kWindowsEach = 40;

/// eps of norms by library: nn.LayerNorm, Llama 2 and GPT-2; T5, Flax, Llama 1 and diffusers; Keras.
inline constexpr double kEpsOfTorch = 1e-5, kEpsOfFlax = 1e-6, kEpsOfKeras = 1e-3;
/// eps that a port may have taken: of F.normalize and BERT, of optimisers and of vectors' norms, and the powers of ten
/// between them and Keras'.
inline constexpr std::array kEpsTried{1e-12, 1e-8, 1e-7, kEpsOfFlax, kEpsOfTorch, 1e-4, kEpsOfKeras};
/// Relative: what another library's reciprocal root may be off by for a whole row (XLA on CPU: 1e-8 to 5e-8). In half
/// width an eps that changes less flips the elements that such a root flips.
inline constexpr double kRootOfLibraries = 0x1p-23;

/// Bases of rotary embeddings: HunyuanVideo; RoFormer, LLaMA and most; DeepSeek Coder; gpt-oss; Llama 3; Qwen 2 and 3,
/// Mixtral, Code Llama.
inline constexpr std::array kRopeBases{256., 1e4, 1e5, 1.5e5, 5e5, 1e6};

}  // namespace parity
