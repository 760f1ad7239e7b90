# SPDX-License-Identifier: Apache-2.0
"""PyTorch's device "neuron": AWS Trainium, or the virtual Trainium in this process.

Nothing needs to be imported: `import torch` loads this package through its entry point, after which
`torch.device("neuron")`, `torch.neuron` and `torch.accelerator` work.
"""

import os

__version__ = "0.1.0"

_loaded = False


def _autoload() -> None:
    """Register the device with PyTorch, once; called by `import torch`."""
    global _loaded
    if _loaded:
        return
    _loaded = True
    import torch

    torch.utils.rename_privateuse1_backend("neuron")
    from torch_neuronx import neuron

    torch._register_device_module("neuron", neuron)
    torch.utils.generate_methods_for_privateuse1_backend(for_storage=True)
    _print_from_host()
    if os.environ.get("TORCH_NEURONX_REPORT") == "1":
        from torch_neuronx.run import report_at_exit

        report_at_exit()


def _print_from_host() -> None:
    """Make repr() of a tensor copy it to the host once; PyTorch would launch operators per element."""
    from torch import _tensor_str

    contents = _tensor_str._tensor_str
    _tensor_str._tensor_str = lambda self, indent: contents(self.cpu() if self.is_neuron else self, indent)


# Whoever imports this package first imports torch here, which calls _autoload() on the way.
import torch  # noqa: E402, F401

_autoload()
