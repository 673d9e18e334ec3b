// Constants of number formats and of approximations that engines compute with. None of them decides anything: whether
// a change explains a difference is judged by its direction and its amplitude.
#pragma once
#include <array>
#include <cstdint>

namespace parity {

inline constexpr int kTf32Dropped = 13;                            // of fp32's 23 bits of significand: 10 are left
inline constexpr double kLargestE4m3 = 448, kLargestE5m2 = 57344;  // OCP 8-bit floating point specification, 1.0
inline constexpr int kLargestInt8 = 127, kLargestInt4 = 7, kInt8Steps = 255, kInt4Steps = 15;
inline constexpr double kLargestE2m1 = 6;  // OCP microscaling formats, 1.0
inline constexpr double kQ4Zero = 8, kHalfStep = .5;
inline constexpr int64_t kBlock32 = 32;  // of ggml's formats and of OCP's microscaling formats

// exp. A cubic for 2^x on [0, 1) with relative error 9e-5, as flash-attention kernels have it; Schraudolph 1999, "A
// fast, compact approximation of the exponential function", for floats.
inline constexpr double kLog2E = 1.4426950408889634, kLeastExponent = 126;
inline constexpr std::array<float, 4> kExp2Polynomial{.077119089663028717f, .227564394474029541f, .695146143436431885f,
                                                      1.f};
inline constexpr double kSchraudolphSlope = 12102203.161561485, kSchraudolphOffset = 1064866805;
inline constexpr double kPower = 1024;
inline constexpr int kPowerDoublings = 10;

// The reciprocal root of Quake III, and its Newton step.
inline constexpr int32_t kRsqrtMagic = 0x5f3759df;
inline constexpr float kThreeHalves = 1.5f;

// tanh: x (135135 + 17325 x^2 + 378 x^4 + x^6) / (135135 + 62370 x^2 + 3150 x^4 + 28 x^6).
inline constexpr std::array<float, 4> kLambertAbove{1, 378, 17325, 135135}, kLambertBelow{28, 3150, 62370, 135135};

// erf: Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.26 (error 1.5e-7) and 7.1.25 (2.5e-5).
inline constexpr float kHastingsP = .3275911f, kHastingsShortP = .47047f;
inline constexpr std::array<float, 5> kHastings{1.061405429f, -1.453152027f, 1.421413741f, -.284496736f, .254829592f};
inline constexpr std::array<float, 3> kHastingsShort{.7478556f, -.0958798f, .3480242f};

// GELU: sqrt(2 / pi), the cubic term of its tanh form, sqrt(1 / 2).
inline constexpr double kRootTwoOverPi = .7978845608028654, kGeluCubic = .044715, kRootHalf = .7071067811865476;

}  // namespace parity
