"""Wilson's score interval: what a share found in n trials says about the true share."""
import math

Z95 = 1.959963984540054   # 97.5 % quantile of the normal distribution


def wilson(hits, trials, z=Z95):
    """(low, high) in [0, 1]; (0, 1) without trials."""
    if trials == 0:
        return 0.0, 1.0
    p, f = hits / trials, z * z / trials
    middle, half = (p + f / 2) / (1 + f), z * math.sqrt(p * (1 - p) / trials + f / (4 * trials)) / (1 + f)
    return (0.0 if hits == 0 else max(0.0, middle - half)), (1.0 if hits == trials else min(1.0, middle + half))


def share(hits, trials):
    """'12 of 13, 92.3 % [66.7, 98.6]'."""
    low, high = wilson(hits, trials)
    return f"{hits} of {trials}" + (f", {hits / trials:.1%} [{low * 100:.1f}, {high * 100:.1f}]" if trials else "")
