"""Which machine recorded: the same one gives the same bits."""


def machine():
    """{cpu, cpu_capability, cpu_flags, torch} of this machine."""
    import torch
    from parity_probe import provenance

    about = provenance.collect(None)
    about.setdefault("torch", torch.__version__)
    about.setdefault("cpu_capability", torch.backends.cpu.get_cpu_capability())
    return {key: about.get(key) for key in ("cpu", "cpu_capability", "cpu_flags", "torch")}
