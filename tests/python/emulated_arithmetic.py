"""Arithmetic as engines have it, bit by bit in NumPy: nothing here is shared with what parity-check looks for it with."""
import ml_dtypes
import numpy as np

F = np.float32


def cast(dtype):
    return lambda x: np.asarray(x, F).astype(dtype).astype(F)


bf16, fp16, e4m3, e5m2 = (cast(d) for d in (ml_dtypes.bfloat16, np.float16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2))


def tf32(x):
    """To nearest, ties away from zero: 10 bits of significand behind the point."""
    mantissa, exponent = np.frexp(np.asarray(x, np.float64))
    return np.ldexp(np.copysign(np.floor(np.abs(mantissa) * 2048 + .5), mantissa) / 2048, exponent).astype(F)


def tf32_truncated(x):
    return (np.ascontiguousarray(x, F).view(np.uint32) & np.uint32(0xFFFFE000)).view(F)


def linear(x, w, b):
    return x @ w.T + b


def rounded_inputs(cut):
    return lambda x, w, b: linear(cut(x), cut(w), b)


def bf16x3(x, w, b):
    xh, wh = bf16(x), bf16(w)
    xl, wl = bf16(x - xh), bf16(w - wh)
    return xh @ wh.T + (xh @ wl.T + xl @ wh.T) + b


def summed(cut, step):
    """A sum kept narrow, `step` products at a time."""
    def run(x, w, b):
        total = np.zeros((x.shape[0], w.shape[0]), F)
        for k in range(0, x.shape[1], step):
            total = cut(total + x[:, k:k + step] @ w[:, k:k + step].T)
        return total + b
    return run


def split_k(cut, parts):
    """Partial sums rounded, then added in float32."""
    def run(x, w, b):
        return sum(cut(a @ c.T) for a, c in zip(np.split(x, parts, 1), np.split(w, parts, 1))) + b
    return run


def blocks(x, size=32):
    return x.reshape(*x.shape[:-1], -1, size)


def q8_0(x):
    b = blocks(x)
    d = np.abs(b).max(-1, keepdims=True) / F(127)
    q = np.rint(b * (F(1) / d))
    return (q * fp16(d)).reshape(x.shape).astype(F)


def int8_rows(x):
    s = np.abs(x).max(-1, keepdims=True) / F(127)
    return (np.rint(x / s) * s).astype(F)


def int8_zero(wrong, signed=True):
    """Bytes from the least to the largest weight of an output; `wrong` makes another of the zero point that reads them."""
    def run(w):
        low, high = w.min(-1, keepdims=True), w.max(-1, keepdims=True)
        s = (high - low) / F(255)
        first = -128 if signed else 0
        zero = np.rint(-low / s) + first
        stored = np.clip(np.rint(w / s) + zero, first, first + 255)
        return ((stored - wrong(zero)) * s).astype(F)
    return run


def int8_rows_moved(by):
    def run(w):
        s = np.abs(w).max(-1, keepdims=True) / F(127)
        stored = (np.rint(w / s) + 128).astype(np.uint8)  # 128 stands for 0
        return ((stored.astype(F) - (128 + by)) * s).astype(F)
    return run


def int4(size):
    def run(x):
        b = blocks(x, size)
        s = np.abs(b).max(-1, keepdims=True) / F(7)
        return (np.rint(b / s) * s).reshape(x.shape).astype(F)
    return run


def mxfp4(x):
    b = blocks(x)
    s = F(2) ** (np.floor(np.log2(np.abs(b).max(-1, keepdims=True))) - 2)
    return (np.clip(b / s, -6, 6).astype(ml_dtypes.float4_e2m1fn).astype(F) * s).reshape(x.shape).astype(F)


def scaled_e4m3(x, axes):
    s = np.abs(x).max(axes, keepdims=True) / F(448)
    return (e4m3(x / s) * s).astype(F)


def weights(cut, inputs=lambda x: x):
    return lambda x, w, b: linear(inputs(x), cut(w), b)


def softmax(s, exp=np.exp):
    e = exp(s - s.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q, k, v, exp=np.exp, p=lambda x: x):
    return (p(softmax(q @ k.swapaxes(-1, -2) / F(np.sqrt(q.shape[-1])), exp)) @ v).astype(F)


def schraudolph(x):
    return np.maximum(F(12102203.161561485) * x.astype(F) + F(1064866805), 0).astype(np.int32).view(F)


def quake_rsqrt(x):
    x = x.astype(F)
    y = (np.int32(0x5F3759DF) - (x.view(np.int32) >> 1)).view(F)
    return y * (F(1.5) - F(.5) * x * y * y)


def layer_norm(x, w, b, rsqrt):
    d = x - x.mean(-1, keepdims=True)
    return d * rsqrt((d * d).mean(-1, keepdims=True) + F(1e-5)) * w + b


def gelu(x, erf):
    return F(.5) * x * (1 + erf(x * F(np.sqrt(.5))))


def hastings_erf(x):
    t = 1 / (1 + F(.47047) * np.abs(x))
    return np.sign(x) * (1 - t * (F(.3480242) + t * (F(-.0958798) + t * F(.7478556))) * np.exp(-x * x))


def gelu_tanh(x, tanh):
    return F(.5) * x * (1 + tanh(F(np.sqrt(2 / np.pi)) * (x + F(.044715) * x ** 3)))


def pade_tanh(x):
    return np.clip(x * (27 + x * x) / (27 + 9 * x * x), -1, 1)
