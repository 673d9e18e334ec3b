"""Pairs of recordings with a known answer: a real PyTorch model, and "ports" of it that differ by one fault or by rounding alone.

family.py says what a fault is, kernels.py which benign changes there are, one file per model family has its model and its faults, capture.py records.
"""
